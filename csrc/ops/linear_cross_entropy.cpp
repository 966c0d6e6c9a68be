#include "csrc/ops/linear_cross_entropy.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/typed_operator.h"

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

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                int64_t ignore_index, double scale) {
  static const auto op = typed_operator<decltype(linear_cross_entropy)>("satformer::linear_cross_entropy");
  return op.call(hidden, weight, targets, ignore_index, scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy_with_gradients(
    const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, int64_t ignore_index, double scale,
    std::array<bool, 2> output_mask, std::optional<at::ScalarType> grad_weight_dtype) {
  static const auto op =
      typed_operator<decltype(linear_cross_entropy_with_gradients)>("satformer::linear_cross_entropy_with_gradients");
  return op.call(hidden, weight, targets, ignore_index, scale, output_mask, grad_weight_dtype);
}

}  // namespace satformer::ops
