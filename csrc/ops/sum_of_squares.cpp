#include "csrc/ops/sum_of_squares.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/sum_of_squares_reference.h"
#include "csrc/ops/typed_operator.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  library.def("sum_of_squares(Tensor[] tensors) -> Tensor", {at::Tag::pt2_compliant_tag});
}

// An empty list has no tensor whose device could choose a kernel.
TORCH_LIBRARY_IMPL(satformer, CompositeExplicitAutograd, library) {
  library.impl("sum_of_squares", &satformer::ops::sum_of_squares_reference);
}

namespace satformer::ops {

at::Tensor sum_of_squares(at::TensorList tensors) {
  static const auto op = typed_operator<decltype(sum_of_squares)>("satformer::sum_of_squares");
  return op.call(tensors);
}

}  // namespace satformer::ops
