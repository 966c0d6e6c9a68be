#include "csrc/ops/linear_cross_entropy.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/linear_cross_entropy_checks.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  library.def(
      "linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets, int ignore_index=-100, float scale=1.0) -> "
      "Tensor",
      tags);
  library.def(
      "linear_cross_entropy_with_gradients(Tensor hidden, Tensor weight, Tensor targets, int ignore_index, float "
      "scale, bool[2] output_mask, ScalarType? grad_weight_dtype=None) -> (Tensor, Tensor, Tensor)",
      tags);
}

namespace satformer::ops {
namespace {

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
at::Tensor empty_loss(const CrossEntropyResults& results) { return at::empty({}, results.losses.options()); }

at::Tensor linear_cross_entropy_meta(const CrossEntropyInputs& in) {
  const CrossEntropyArguments arguments{in};
  check_linear_cross_entropy("linear_cross_entropy", arguments);
  return empty_loss(outputs_of_linear_cross_entropy(arguments));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy_with_gradients_meta(
    const CrossEntropyArguments& in) {
  check_linear_cross_entropy("linear_cross_entropy_with_gradients", in);
  const CrossEntropyResults results = outputs_of_linear_cross_entropy(in);
  return {empty_loss(results), results.grad_hidden, results.grad_weight};
}

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                int64_t ignore_index, double scale) {
  static const Operator<decltype(linear_cross_entropy)> op("satformer::linear_cross_entropy");
  return op(hidden, weight, targets, ignore_index, scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy_with_gradients(
    const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, int64_t ignore_index, double scale,
    std::array<bool, 2> output_mask, std::optional<at::ScalarType> grad_weight_dtype) {
  static const Operator<decltype(linear_cross_entropy_with_gradients)> op(
      "satformer::linear_cross_entropy_with_gradients");
  return op(hidden, weight, targets, ignore_index, scale, output_mask, grad_weight_dtype);
}

}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"linear_cross_entropy", &linear_cross_entropy_meta>(library);
  implement<"linear_cross_entropy_with_gradients", &linear_cross_entropy_with_gradients_meta>(library);
}
