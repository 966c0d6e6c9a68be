// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/linear_cross_entropy_chunks.h"

namespace satformer::ops {
namespace {

at::Tensor empty_loss(const CrossEntropyResults& results) { return at::empty({}, results.losses.options()); }

at::Tensor cross_entropy_meta(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                              int64_t ignore_index, double scale) {
  const CrossEntropyArguments arguments{hidden, weight, targets, ignore_index, scale};
  check_cross_entropy("linear_cross_entropy", arguments);
  return empty_loss(empty_results(arguments));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> with_gradients_meta(const at::Tensor& hidden, const at::Tensor& weight,
                                                                   const at::Tensor& targets, int64_t ignore_index,
                                                                   double scale, std::array<bool, 2> output_mask,
                                                                   std::optional<at::ScalarType> grad_weight_dtype) {
  const CrossEntropyArguments arguments{hidden, weight, targets, ignore_index, scale, output_mask, grad_weight_dtype};
  check_cross_entropy("linear_cross_entropy_with_gradients", arguments);
  const CrossEntropyResults results = empty_results(arguments);
  return {empty_loss(results), results.grad_hidden, results.grad_weight};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("linear_cross_entropy", &satformer::ops::cross_entropy_meta);
  library.impl("linear_cross_entropy_with_gradients", &satformer::ops::with_gradients_meta);
}
