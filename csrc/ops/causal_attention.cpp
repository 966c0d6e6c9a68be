#include "csrc/ops/causal_attention.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/causal_attention_checks.h"
#include "csrc/ops/dispatch.h"

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
  static const Operator<decltype(causal_attention)> op("satformer::causal_attention");
  return op(q, k, v);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> causal_attention_backward(const at::Tensor& grad, const at::Tensor& q,
                                                                         const at::Tensor& k, const at::Tensor& v,
                                                                         const at::Tensor& out,
                                                                         const at::Tensor& logsumexp) {
  static const Operator<decltype(causal_attention_backward)> op("satformer::causal_attention_backward");
  return op(grad, q, k, v, out, logsumexp);
}

}  // namespace satformer::ops

// Check and allocate: shapes and dtypes without values, for torch.compile, export and fake tensors.
TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  implement<"causal_attention", &outputs_of_causal_attention>(library);
  implement<"causal_attention_backward", &outputs_of_causal_attention_backward>(library);
}
