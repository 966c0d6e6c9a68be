#include "csrc/ops/swiglu.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/typed_operator.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  library.def("swiglu(Tensor packed) -> Tensor", tags);
  library.def("swiglu_backward(Tensor grad, Tensor packed, bool with_output) -> (Tensor, Tensor)", tags);
  library.def("swiglu_backward_(Tensor(a!) packed, Tensor(b!) grad) -> ()", tags);
}

namespace satformer::ops {

at::Tensor swiglu(const at::Tensor& packed) {
  static const auto op = typed_operator<decltype(swiglu)>("satformer::swiglu");
  return op.call(packed);
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& packed, bool with_output) {
  static const auto op = typed_operator<decltype(swiglu_backward)>("satformer::swiglu_backward");
  return op.call(grad, packed, with_output);
}

void swiglu_backward_(at::Tensor& packed, at::Tensor& grad) {
  static const auto op = typed_operator<decltype(swiglu_backward_)>("satformer::swiglu_backward_");
  op.call(packed, grad);
}

}  // namespace satformer::ops
