// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/rms_norm_arguments.h"

namespace satformer::ops {
namespace {

std::tuple<at::Tensor, at::Tensor> rms_norm_meta(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                 std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = check_norm(x, std::nullopt, weight, eps, out_dtype);
  return {out.y, out.inverse_rms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_meta(const at::Tensor& x, const at::Tensor& residual,
                                                                 const at::Tensor& weight, double eps,
                                                                 std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = check_norm(x, residual, weight, eps, out_dtype);
  return {out.sum, out.y, out.inverse_rms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_meta(const at::Tensor& grad_y,
                                                             const std::optional<at::Tensor>& grad_sum,
                                                             const at::Tensor& sum, const at::Tensor& weight,
                                                             const at::Tensor& inverse_rms,
                                                             std::optional<at::ScalarType> residual_dtype) {
  return check_norm_backward(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype).tuple();
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("rms_norm", &satformer::ops::rms_norm_meta);
  library.impl("add_rms_norm", &satformer::ops::add_rms_norm_meta);
  library.impl("rms_norm_apply", &satformer::ops::check_apply);
  library.impl("rms_norm_backward", &satformer::ops::backward_meta);
}
