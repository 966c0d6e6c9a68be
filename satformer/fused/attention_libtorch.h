#pragma once
// Attention by LibTorch's kernels. `mask` as AttentionContext's: undefined for causal attention.
#include <tuple>

#include "csrc/ops/qk_norm_rope_mix.h"

namespace satformer::fused::libtorch {

// On the CPU, below autograd: it knows masks, and the processor's own bfloat16 products.
// (output [B, T, H, hd], logsumexp of each query's scores).
std::tuple<at::Tensor, at::Tensor> attend_cpu(const ops::MixOutputs& in, const at::Tensor& mask);

// The gradients of q, k and v for that of the output.
ops::MixOutputs attend_cpu_backward(const at::Tensor& grad, const ops::MixOutputs& in, const at::Tensor& output,
                                    const at::Tensor& logsumexp, const at::Tensor& mask);

// On any device, under autograd: the kernel that scaled_dot_product_attention chooses. [B, T, H, hd].
at::Tensor attend(const ops::MixOutputs& in, const at::Tensor& mask);

}  // namespace satformer::fused::libtorch
