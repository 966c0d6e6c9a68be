#include "csrc/ops/rms_norm.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/rms_norm_checks.h"

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
namespace {

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
std::tuple<at::Tensor, at::Tensor> rms_norm_meta(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                 std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = outputs_of_rms_norm(x, std::nullopt, weight, eps, out_dtype);
  return {out.y, out.inverse_rms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_meta(const at::Tensor& x, const at::Tensor& residual,
                                                                 const at::Tensor& weight, double eps,
                                                                 std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = outputs_of_rms_norm(x, residual, weight, eps, out_dtype);
  return {out.sum, out.y, out.inverse_rms};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                                            std::optional<at::ScalarType> out_dtype) {
  static const Operator<decltype(rms_norm)> op("satformer::rms_norm");
  return op(x, weight, eps, out_dtype);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                                                            const at::Tensor& weight, double eps,
                                                            std::optional<at::ScalarType> out_dtype) {
  static const Operator<decltype(add_rms_norm)> op("satformer::add_rms_norm");
  return op(x, residual, weight, eps, out_dtype);
}

at::Tensor rms_norm_apply(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                          std::optional<at::ScalarType> out_dtype) {
  static const Operator<decltype(rms_norm_apply)> op("satformer::rms_norm_apply");
  return op(sum, weight, inverse_rms, out_dtype);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& grad_y,
                                                                 const std::optional<at::Tensor>& grad_sum,
                                                                 const at::Tensor& sum, const at::Tensor& weight,
                                                                 const at::Tensor& inverse_rms,
                                                                 std::optional<at::ScalarType> residual_dtype) {
  static const Operator<decltype(rms_norm_backward)> op("satformer::rms_norm_backward");
  return op(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype);
}

}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"rms_norm", &rms_norm_meta>(library);
  implement<"add_rms_norm", &add_rms_norm_meta>(library);
  implement<"rms_norm_apply", &outputs_of_rms_norm_apply>(library);
  implement<"rms_norm_backward", &outputs_of_rms_norm_backward>(library);
}
