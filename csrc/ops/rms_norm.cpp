#include "csrc/ops/rms_norm.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/typed_operator.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  library.def(
      "rms_norm(Tensor x, Tensor weight, float eps, ScalarType? out_dtype=None) -> (Tensor y, Tensor inverse_rms)",
      tags);
  library.def(
      "add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps, ScalarType? out_dtype=None) -> (Tensor sum, "
      "Tensor y, Tensor inverse_rms)",
      tags);
  library.def("rms_norm_apply(Tensor sum, Tensor weight, Tensor inverse_rms, ScalarType? out_dtype=None) -> Tensor",
              tags);
  library.def(
      "rms_norm_backward(Tensor grad_y, Tensor? grad_sum, Tensor sum, Tensor weight, Tensor inverse_rms, ScalarType? "
      "residual_dtype=None) -> (Tensor, Tensor, Tensor)",
      tags);
}

namespace satformer::ops {

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                                            std::optional<at::ScalarType> out_dtype) {
  static const auto op = typed_operator<decltype(rms_norm)>("satformer::rms_norm");
  return op.call(x, weight, eps, out_dtype);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                                                            const at::Tensor& weight, double eps,
                                                            std::optional<at::ScalarType> out_dtype) {
  static const auto op = typed_operator<decltype(add_rms_norm)>("satformer::add_rms_norm");
  return op.call(x, residual, weight, eps, out_dtype);
}

at::Tensor rms_norm_apply(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                          std::optional<at::ScalarType> out_dtype) {
  static const auto op = typed_operator<decltype(rms_norm_apply)>("satformer::rms_norm_apply");
  return op.call(sum, weight, inverse_rms, out_dtype);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& grad_y,
                                                                 const std::optional<at::Tensor>& grad_sum,
                                                                 const at::Tensor& sum, const at::Tensor& weight,
                                                                 const at::Tensor& inverse_rms,
                                                                 std::optional<at::ScalarType> residual_dtype) {
  static const auto op = typed_operator<decltype(rms_norm_backward)>("satformer::rms_norm_backward");
  return op.call(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype);
}

}  // namespace satformer::ops
