#pragma once
// The RMSNorm operators in plain ATen calls: the definition that the kernels are held to, and what second derivatives
// use. Any device, any floating dtype, any strides; differentiable any number of times. Formulas: csrc/ops/rms_norm.h.
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace satformer::ops {

std::tuple<at::Tensor, at::Tensor> rms_norm_reference(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                      std::optional<at::ScalarType> out_dtype = std::nullopt);

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_reference(
    const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps,
    std::optional<at::ScalarType> out_dtype = std::nullopt);

// Differentiable in inverse_rms too, which is a number of its own here.
at::Tensor rms_norm_apply_reference(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                    std::optional<at::ScalarType> out_dtype = std::nullopt);

// inverse_rms is a function of sum here: its eps is got back from the two, so that the second derivative is whole.
std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward_reference(
    const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum, const at::Tensor& sum,
    const at::Tensor& weight, const at::Tensor& inverse_rms,
    std::optional<at::ScalarType> residual_dtype = std::nullopt);

}  // namespace satformer::ops
