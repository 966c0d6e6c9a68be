#include "tests/csrc/toy_affine.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "tests/csrc/toy_affine_checks.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  library.def("toy_affine(Tensor x, Tensor? bias=None, float factor=1.0) -> Tensor", {at::Tag::pt2_compliant_tag});
}

namespace satformer::tests::toy {

at::Tensor toy_affine(const Affine& in) {
  static const ops::Operator<decltype(toy_affine)> op("satformer::toy_affine");
  return op(in);
}

}  // namespace satformer::tests::toy

// Check and allocate.
TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  satformer::ops::implement<"toy_affine", &satformer::tests::toy::outputs_of_toy_affine>(library);
}
