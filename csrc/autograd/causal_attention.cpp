// Autograd: saves the arguments and both results; the backward is the operator causal_attention_backward, and its own
// derivative goes through the composite definition.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/causal_attention.h"
#include "csrc/ops/causal_attention_reference.h"
#include "csrc/ops/dispatch.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CausalAttention : torch::autograd::Function<CausalAttention> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [out, logsumexp] = causal_attention(q, k, v);
    context->save_for_backward({q, k, v, out, logsumexp});
    context->mark_non_differentiable({logsumexp});
    return {out, logsumexp};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const auto [q, k, v] = causal_attention_backward(grads[0], saved[0], saved[1], saved[2], saved[3], saved[4]);
    return {q, k, v};
  }
};

std::tuple<at::Tensor, at::Tensor> causal_attention_autograd(const at::Tensor& q, const at::Tensor& k,
                                                             const at::Tensor& v) {
  const variable_list outputs = CausalAttention::apply(q, k, v);
  return {outputs[0], outputs[1]};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> causal_attention_backward_autograd(
    const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
    const at::Tensor& logsumexp) {
  if (at::GradMode::is_enabled() &&
      (grad.requires_grad() || q.requires_grad() || k.requires_grad() || v.requires_grad())) {
    return causal_attention_backward_reference(grad, q, k, v);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return causal_attention_backward(grad, q, k, v, out, logsumexp);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;

  implement<"causal_attention", &causal_attention_autograd>(library);
  implement<"causal_attention_backward", &causal_attention_backward_autograd>(library);
}
