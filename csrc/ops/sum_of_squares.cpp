#include "csrc/ops/sum_of_squares.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/sum_of_squares_checks.h"
#include "csrc/ops/sum_of_squares_reference.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  library.def("sum_of_squares(Tensor[] tensors) -> Tensor", {at::Tag::pt2_compliant_tag});
}

// An empty list has no tensor whose device could choose a kernel.
TORCH_LIBRARY_IMPL(satformer, CompositeExplicitAutograd, library) {
  satformer::ops::implement<"sum_of_squares", &satformer::ops::sum_of_squares_reference>(library);
}

namespace satformer::ops {
namespace {

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
at::Tensor sum_of_squares_meta(at::TensorList tensors) {
  check_sum_of_squares(tensors);
  return at::empty({}, tensors[0].options().dtype(at::kDouble));
}

}  // namespace

at::Tensor sum_of_squares(at::TensorList tensors) {
  static const Operator<decltype(sum_of_squares)> op("satformer::sum_of_squares");
  return op(tensors);
}

}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"sum_of_squares", &sum_of_squares_meta>(library);
}
