#pragma once
// Attention by our own CPU kernel (csrc/ops/causal_attention.h): causal, without a mask, in float32 and float64, where
// it is the fastest.
#include <tuple>

#include "csrc/ops/qk_norm_rope_mix.h"

namespace satformer::fused::ours {

// (output [B, T, H, hd], logsumexp of each query's scores).
std::tuple<at::Tensor, at::Tensor> attend(const ops::MixOutputs& in);

// The gradients of q, k and v for that of the output.
ops::MixOutputs attend_backward(const at::Tensor& grad, const ops::MixOutputs& in, const at::Tensor& output,
                                const at::Tensor& logsumexp);

}  // namespace satformer::fused::ours
