#include "csrc/ops/depth_weighted_sum.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <string>

#include "csrc/ops/depth_weighted_sum_checks.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/row_arguments.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  // torch.compile cannot functionalise an operator that writes to its arguments and returns lists.
  const std::vector<at::Tag> eager_tags{at::Tag::needs_exact_strides};
  const std::string sum =
      "Tensor[] sources, Tensor weights, Tensor? base, Tensor[] source_norm_weights, Tensor[] source_inverse_rms, "
      "Tensor[] output_norm_weights, float output_norm_eps";
  const std::string gradients = "(Tensor[], Tensor, Tensor, Tensor[], Tensor[], Tensor[])";
  const auto define = [&](const std::string& schema) { library.def(schema.c_str(), tags); };
  define("depth_weighted_sum(" + sum + ") -> Tensor[]");
  define("depth_weighted_sum_backward(Tensor[] grads, " + sum + ", bool[6] output_mask) -> " + gradients);
  const std::string backward_add = "depth_weighted_sum_backward_(Tensor(a!)[] grad_sources, Tensor[] grads, " + sum +
                                   ", bool[6] output_mask) -> " + gradients;
  library.def(backward_add.c_str(), eager_tags);
  define("inverse_rms(Tensor x, float eps) -> Tensor");
  define("inverse_rms_backward(Tensor grad, Tensor x, Tensor inverse) -> Tensor");
}

namespace satformer::ops {
namespace {

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
Tensors depth_weighted_sum_meta(const DepthSum& sum) {
  check_depth_weighted_sum("depth_weighted_sum", sum);
  return outputs_of_depth_weighted_sum(sum);
}

DepthSumGradients depth_weighted_sum_backward_meta(at::TensorList grads, const DepthSum& sum, DepthSumMask mask) {
  check_depth_weighted_sum_backward("depth_weighted_sum_backward", grads, sum);
  return DepthSumBackwardOutputs(sum, wanted_gradients(mask, sum), /*with_sources=*/true).gradients(sum);
}

DepthSumGradients depth_weighted_sum_backward_add_meta(at::TensorList grad_sources, at::TensorList grads,
                                                       const DepthSum& sum, DepthSumMask mask) {
  const char* op = "depth_weighted_sum_backward_";
  check_depth_weighted_sum_backward(op, grads, sum);
  check_grad_sources(op, grad_sources, grads, sum);
  return DepthSumBackwardOutputs(sum, wanted_gradients(mask, sum), /*with_sources=*/false).gradients(sum);
}

at::Tensor inverse_rms_meta(const at::Tensor& x, double eps) {
  check_inverse_rms(x, eps);
  return at::empty_symint(x.sym_sizes().slice(0, x.dim() - 1), x.options().dtype(accumulate_dtype(x)));
}

at::Tensor inverse_rms_backward_meta(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  check_inverse_rms_backward(grad, x, inverse);
  return at::empty_symint(x.sym_sizes(), x.options());
}

}  // namespace

std::vector<at::Tensor> depth_weighted_sum(const DepthSum& sum) {
  static const Operator<decltype(depth_weighted_sum)> op("satformer::depth_weighted_sum");
  return op(sum);
}

DepthSumGradients depth_weighted_sum_backward(const std::vector<at::Tensor>& grads, const DepthSum& sum,
                                              const DepthSumMask& mask) {
  static const Operator<decltype(depth_weighted_sum_backward)> op("satformer::depth_weighted_sum_backward");
  return op(grads, sum, mask);
}

DepthSumGradients depth_weighted_sum_backward_(std::vector<at::Tensor>& grad_sources,
                                               const std::vector<at::Tensor>& grads, const DepthSum& sum,
                                               const DepthSumMask& mask) {
  static const Operator<decltype(depth_weighted_sum_backward_)> op("satformer::depth_weighted_sum_backward_");
  return op(grad_sources, grads, sum, mask);
}

at::Tensor inverse_rms(const at::Tensor& x, double eps) {
  static const Operator<decltype(inverse_rms)> op("satformer::inverse_rms");
  return op(x, eps);
}

at::Tensor inverse_rms_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  static const Operator<decltype(inverse_rms_backward)> op("satformer::inverse_rms_backward");
  return op(grad, x, inverse);
}

}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"depth_weighted_sum", &depth_weighted_sum_meta>(library);
  implement<"depth_weighted_sum_backward", &depth_weighted_sum_backward_meta>(library);
  implement<"depth_weighted_sum_backward_", &depth_weighted_sum_backward_add_meta>(library);
  implement<"inverse_rms", &inverse_rms_meta>(library);
  implement<"inverse_rms_backward", &inverse_rms_backward_meta>(library);
}
