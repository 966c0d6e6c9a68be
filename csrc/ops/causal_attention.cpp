#include "csrc/ops/causal_attention.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/typed_operator.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  library.def("causal_attention(Tensor q, Tensor k, Tensor v) -> (Tensor out, Tensor logsumexp)", tags);
  library.def(
      "causal_attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor logsumexp) -> (Tensor, "
      "Tensor, Tensor)",
      tags);
}

namespace satformer::ops {

std::tuple<at::Tensor, at::Tensor> causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  static const auto op = typed_operator<decltype(causal_attention)>("satformer::causal_attention");
  return op.call(q, k, v);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> causal_attention_backward(const at::Tensor& grad, const at::Tensor& q,
                                                                         const at::Tensor& k, const at::Tensor& v,
                                                                         const at::Tensor& out,
                                                                         const at::Tensor& logsumexp) {
  static const auto op = typed_operator<decltype(causal_attention_backward)>("satformer::causal_attention_backward");
  return op.call(grad, q, k, v, out, logsumexp);
}

}  // namespace satformer::ops
