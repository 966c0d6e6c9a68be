#pragma once
// The selective value mix (SATFormer):
//
//   alpha  = gate(logits)                       [B, T, H_kv]
//   alpha' = scale * alpha + shift              [B, T, H_kv]   (absent: scale 1, shift 0)
//   v'     = v + alpha'[..., None] * v1         [B, T, H_kv, hd]
//
//   v             [B, T, H_kv, hd]  this layer's values, any sizes (also 0). float32, bfloat16 or float16; float64 on
//                                   CPU. The last dimension is contiguous, the other strides are free: v may be a
//                                   slice of a packed projection.
//   first_values  [B, T, H_kv, hd]  v1, the first layer's values; dtype and rules of v, and it may be expanded
//   logits        [B, T, H_kv]      float32 or v's dtype, any strides
//   scale, shift  broadcast to logits' shape; any floating dtype. The intervention on the gates: zeroing is scale 0,
//                 mean replacement is scale 0 and shift = mean.
//
// Arithmetic is in float32 (float64 when v is float64) with one rounding to v's dtype at the end. Where alpha' is
// exactly 0, first_values is not read and v' is v bit for bit. Differentiable in v, first_values, logits, scale and
// shift, twice. relu'(0) = 0. A wrong argument is a c10::Error that names operator, argument and the value it got.
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

#include "csrc/ops/gate.h"

namespace satformer::ops {

// v', contiguous.
at::Tensor gated_value_mix(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                           Gate gate = Gate::kRelu, const std::optional<at::Tensor>& scale = std::nullopt,
                           const std::optional<at::Tensor>& shift = std::nullopt);

// Writes v' over v and returns v. Works under autograd: the backward does not need v.
at::Tensor& gated_value_mix_(at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                             Gate gate = Gate::kRelu, const std::optional<at::Tensor>& scale = std::nullopt,
                             const std::optional<at::Tensor>& shift = std::nullopt);

// The gradients of first_values, logits, scale and shift for the gradient `grad` of v' (v's own gradient is `grad`
// itself); undefined where output_mask, in this order, is false:
//
//   d first_values = alpha' * grad                           (0 where alpha' is 0, without reading grad)
//   d alpha'       = sum over hd of grad * first_values      (float32; only where something multiplies it)
//   d scale, shift = alpha * d alpha', d alpha'              summed to their shapes
//   d logits       = gate'(logits)^T (scale * d alpha')      over the token's heads for the softmax gates
//
//   grad [B, T, H_kv, hd] of first_values' dtype, any strides.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward(
    const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
    const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask);

}  // namespace satformer::ops
