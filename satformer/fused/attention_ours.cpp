#include "satformer/fused/attention_ours.h"

#include "csrc/ops/causal_attention.h"

namespace satformer::fused::ours {

std::tuple<at::Tensor, at::Tensor> attend(const ops::MixOutputs& in) { return ops::causal_attention(in.q, in.k, in.v); }

ops::MixOutputs attend_backward(const at::Tensor& grad, const ops::MixOutputs& in, const at::Tensor& output,
                                const at::Tensor& logsumexp) {
  const auto [q, k, v] = ops::causal_attention_backward(grad, in.q, in.k, in.v, output, logsumexp);
  return {q, k, v};
}

}  // namespace satformer::fused::ours
