#include "csrc/ops/rms_norm_reference.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>

#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

at::Tensor mean_of_squares(const at::Tensor& x) { return (x * x).mean(-1, /*keepdim=*/true); }

}  // namespace

at::Tensor rms_norm_apply_reference(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                    std::optional<at::ScalarType> out_dtype) {
  const at::ScalarType dtype = accumulate_dtype(sum);
  return (sum.to(dtype) * inverse_rms * weight.to(dtype)).to(out_dtype.value_or(sum.scalar_type()));
}

std::tuple<at::Tensor, at::Tensor> rms_norm_reference(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                      std::optional<at::ScalarType> out_dtype) {
  const at::Tensor inverse_rms = (mean_of_squares(x.to(accumulate_dtype(x))) + eps).rsqrt();
  return {rms_norm_apply_reference(x, weight, inverse_rms, out_dtype), inverse_rms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_reference(const at::Tensor& x, const at::Tensor& residual,
                                                                      const at::Tensor& weight, double eps,
                                                                      std::optional<at::ScalarType> out_dtype) {
  const at::ScalarType dtype = accumulate_dtype(x);
  const at::Tensor sum = (x.to(dtype) + residual.to(dtype)).to(x.scalar_type());
  const auto [y, inverse_rms] = rms_norm_reference(sum, weight, eps, out_dtype);
  return {sum, y, inverse_rms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward_reference(
    const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum, const at::Tensor& sum,
    const at::Tensor& weight, const at::Tensor& inverse_rms, std::optional<at::ScalarType> residual_dtype) {
  const at::ScalarType dtype = accumulate_dtype(sum);
  const at::Tensor x = sum.to(dtype), grad = grad_y.to(dtype), squares = mean_of_squares(x);
  const at::Tensor eps = (1 / (inverse_rms * inverse_rms) - squares).detach();
  const at::Tensor r = (squares + eps).rsqrt(), g = grad * weight.to(dtype);
  at::Tensor grad_x = r * (g - x * r * r * (g * x).mean(-1, /*keepdim=*/true));
  if (given(grad_sum)) grad_x = grad_x + grad_sum->to(dtype);
  at::Tensor grad_weight = grad * x * r;
  for (int64_t dim = sum.dim(); dim > 1; --dim) grad_weight = grad_weight.sum(0);
  const bool apart = residual_dtype.has_value() && *residual_dtype != sum.scalar_type();
  return {grad_x.to(sum.scalar_type()), grad_weight.to(weight.scalar_type()),
          apart ? grad_x.to(*residual_dtype) : at::Tensor()};
}

}  // namespace satformer::ops
