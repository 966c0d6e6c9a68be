// Shape, dtype and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/sum_of_squares_arguments.h"

namespace satformer::ops {
namespace {

at::Tensor sum_of_squares_meta(at::TensorList tensors) {
  check_sum_of_squares(tensors);
  return at::empty({}, tensors[0].options().dtype(at::kDouble));
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) { library.impl("sum_of_squares", &satformer::ops::sum_of_squares_meta); }
