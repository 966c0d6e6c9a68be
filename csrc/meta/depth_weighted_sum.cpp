// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/depth_weighted_sum_arguments.h"

namespace satformer::ops {
namespace {

Tensors depth_sum_meta(at::TensorList sources, const at::Tensor& weights, const std::optional<at::Tensor>& base,
                       at::TensorList source_norm_weights, at::TensorList source_inverse_rms,
                       at::TensorList output_norm_weights, double output_norm_eps) {
  const DepthSumArguments a{sources,        weights, base, source_norm_weights, source_inverse_rms, output_norm_weights,
                            output_norm_eps};
  check_depth_sum("depth_weighted_sum", a);
  Tensors out;
  for (std::size_t c = 0; c < a.ways(); ++c) {
    out.push_back(at::empty_symint(sources[0].sym_sizes(), sources[0].options()));
  }
  return out;
}

DepthGradientTuple depth_sum_backward_meta(at::TensorList grads, at::TensorList sources, const at::Tensor& weights,
                                           const std::optional<at::Tensor>& base, at::TensorList source_norm_weights,
                                           at::TensorList source_inverse_rms, at::TensorList output_norm_weights,
                                           double output_norm_eps, DepthSumMask mask) {
  const DepthSumArguments a{sources,        weights, base, source_norm_weights, source_inverse_rms, output_norm_weights,
                            output_norm_eps};
  check_depth_sum_backward("depth_weighted_sum_backward", grads, a);
  return DepthSumOutputs(a, wanted_gradients(mask, a), /*with_sources=*/true).gradients(a);
}

DepthGradientTuple depth_sum_backward_add_meta(at::TensorList grad_sources, at::TensorList grads,
                                               at::TensorList sources, const at::Tensor& weights,
                                               const std::optional<at::Tensor>& base,
                                               at::TensorList source_norm_weights, at::TensorList source_inverse_rms,
                                               at::TensorList output_norm_weights, double output_norm_eps,
                                               DepthSumMask mask) {
  const char* op = "depth_weighted_sum_backward_";
  const DepthSumArguments a{sources,        weights, base, source_norm_weights, source_inverse_rms, output_norm_weights,
                            output_norm_eps};
  check_depth_sum_backward(op, grads, a);
  check_grad_sources(op, grad_sources, grads, a);
  return DepthSumOutputs(a, wanted_gradients(mask, a), /*with_sources=*/false).gradients(a);
}

at::Tensor inverse_rms_meta(const at::Tensor& x, double eps) {
  check_inverse_rms(x, eps);
  return at::empty_symint(x.sym_sizes().slice(0, x.dim() - 1), x.options().dtype(at::toOpMathType(x.scalar_type())));
}

at::Tensor inverse_rms_backward_meta(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  check_inverse_rms_backward(grad, x, inverse);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("depth_weighted_sum", &satformer::ops::depth_sum_meta);
  library.impl("depth_weighted_sum_backward", &satformer::ops::depth_sum_backward_meta);
  library.impl("depth_weighted_sum_backward_", &satformer::ops::depth_sum_backward_add_meta);
  library.impl("inverse_rms", &satformer::ops::inverse_rms_meta);
  library.impl("inverse_rms_backward", &satformer::ops::inverse_rms_backward_meta);
}
