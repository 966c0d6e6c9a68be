#pragma once
// RMSNorm (Zhang and Sennrich 2019, equation 4), alone and with the addition that stands before it in a residual
// stream:
//
//   sum         = x + residual                           [..., n]  x's dtype
//   inverse_rms = 1 / sqrt(mean(sum^2) + eps)            [..., 1]  the mean over n
//   y           = sum * inverse_rms * weight             [..., n]  out_dtype (absent: x's)
//
//   x           [..., n]  float32, bfloat16 or float16; float64 on CPU. Any strides; where the last dimension is not
//                         contiguous, it is copied first.
//   residual    [..., n]  any of these dtypes: under bfloat16 compute the stream x is float32, what is added bfloat16
//   weight      [n]       any of these dtypes
//
// Arithmetic and inverse_rms are float32 (float64 when x is float64); each output is rounded once, and y is computed
// from the rounded sum. Differentiable twice in x, residual and weight; inverse_rms is not differentiable. Saved: sum
// (or x), weight, inverse_rms. A wrong argument is a c10::Error that names operator, argument and what it got.
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace satformer::ops {

// (y, inverse_rms) of sum = x.
std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                                            std::optional<at::ScalarType> out_dtype = std::nullopt);

// (sum, y, inverse_rms).
std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                                                            const at::Tensor& weight, double eps,
                                                            std::optional<at::ScalarType> out_dtype = std::nullopt);

// y once more, from the kept inverse_rms: bit for bit what rms_norm and add_rms_norm gave, without their sums. For
// layers that recompute y in the backward pass instead of keeping it.
at::Tensor rms_norm_apply(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                          std::optional<at::ScalarType> out_dtype = std::nullopt);

// (grad_x, grad_weight, grad_residual), in one pass over the rows; with g = grad_y * weight, r = inverse_rms:
//
//   grad_x      = grad_sum + r (g - sum r^2 mean(g sum))     [..., n]  sum's dtype; also the gradient of residual
//   grad_weight = grad_y sum r, summed over the rows         [n]       weight's dtype
//
//   grad_y         [..., n]  any floating dtype
//   grad_sum       [..., n]  what else reaches sum, absent: 0; any floating dtype
//   residual_dtype           where given and not sum's dtype, grad_residual is grad_x rounded to it; else undefined
//
// The number of threads changes no bit: rows are summed in blocks of a size that depends on the shape alone.
std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward(
    const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum, const at::Tensor& sum,
    const at::Tensor& weight, const at::Tensor& inverse_rms,
    std::optional<at::ScalarType> residual_dtype = std::nullopt);

}  // namespace satformer::ops
