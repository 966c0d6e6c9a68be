#include "csrc/ops/swiglu.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/swiglu_checks.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  library.def("swiglu(Tensor packed) -> Tensor", tags);
  library.def("swiglu_backward(Tensor grad, Tensor packed, bool with_output) -> (Tensor, Tensor)", tags);
  library.def("swiglu_backward_(Tensor(a!) packed, Tensor(b!) grad) -> ()", tags);
}

namespace satformer::ops {

at::Tensor swiglu(const at::Tensor& packed) {
  static const Operator<decltype(swiglu)> op("satformer::swiglu");
  return op(packed);
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& packed, bool with_output) {
  static const Operator<decltype(swiglu_backward)> op("satformer::swiglu_backward");
  return op(grad, packed, with_output);
}

void swiglu_backward_(at::Tensor& packed, at::Tensor& grad) {
  static const Operator<decltype(swiglu_backward_)> op("satformer::swiglu_backward_");
  op(packed, grad);
}

}  // namespace satformer::ops

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"swiglu", &outputs_of_swiglu>(library);
  implement<"swiglu_backward", &outputs_of_swiglu_backward>(library);
  implement<"swiglu_backward_", &check_swiglu_backward_in_place>(library);
}
