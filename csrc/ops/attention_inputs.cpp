#include "csrc/ops/attention_inputs.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/attention_inputs_calls.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  // Strides must reach the kernels as the model laid them out: a compiler may not repack a slice of a projection.
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  library.def(
      "attention_inputs(Tensor q, Tensor k, Tensor v, Tensor cos, Tensor sin, Tensor? q_weight=None, "
      "Tensor? k_weight=None, float eps=1e-05, Tensor? first_values=None, Tensor? logits=None, str gate=\"relu\", "
      "Tensor? lambda1=None, Tensor? lambda2=None, bool copy_values=True) -> (Tensor, Tensor, Tensor)",
      tags);
  library.def(
      "attention_inputs_backward(Tensor grad_q, Tensor grad_k, Tensor? grad_v, Tensor? q, Tensor? k, Tensor? v, "
      "Tensor cos, Tensor sin, Tensor? q_weight, Tensor? k_weight, float eps, Tensor? first_values, Tensor? logits, "
      "str gate, Tensor? lambda1, Tensor? lambda2, Tensor(a!) q_target, Tensor(b!) k_target, Tensor(c!)? v_target, "
      "Tensor(d!)? logits_target, Tensor(e!)? first_values_target, bool[5] output_mask) -> (Tensor, Tensor, Tensor, "
      "Tensor, Tensor)",
      tags);
}

namespace satformer::ops {
namespace {

OptionalTensor given_or_none(const at::Tensor& x) { return x.defined() ? OptionalTensor(x) : std::nullopt; }

}  // namespace

const c10::TypedOperatorHandle<AttentionInputsSignature>& attention_inputs_operator() {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("satformer::attention_inputs", "")
                                 .typed<AttentionInputsSignature>();
  return handle;
}

const c10::TypedOperatorHandle<AttentionInputsBackwardSignature>& attention_inputs_backward_operator() {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("satformer::attention_inputs_backward", "")
                                 .typed<AttentionInputsBackwardSignature>();
  return handle;
}

AttentionOperands call_attention_inputs(const AttentionInputs& in) {
  auto [q, k, v] = attention_inputs_operator().call(
      in.q, in.k, in.v, in.cos, in.sin, given_or_none(in.q_weight), given_or_none(in.k_weight), in.eps,
      given_or_none(in.first_values), given_or_none(in.logits), gate_name(in.gate), given_or_none(in.lambda1),
      given_or_none(in.lambda2), in.copy_values);
  return {q, k, v};
}

AttentionOperands attention_inputs(const AttentionInputs& in) {
  AttentionOperands out = call_attention_inputs(in);
  if (!out.v.defined()) out.v = in.v;
  return out;
}

AttentionInputGradients attention_inputs_backward(const AttentionInputs& in, const AttentionOperands& grads,
                                                  const AttentionInputTargets& targets,
                                                  std::array<bool, 5> output_mask) {
  auto [q_weight, k_weight, first_values, lambda1, lambda2] = attention_inputs_backward_operator().call(
      grads.q, grads.k, given_or_none(grads.v), given_or_none(in.q), given_or_none(in.k), given_or_none(in.v), in.cos,
      in.sin, given_or_none(in.q_weight), given_or_none(in.k_weight), in.eps, given_or_none(in.first_values),
      given_or_none(in.logits), gate_name(in.gate), given_or_none(in.lambda1), given_or_none(in.lambda2), targets.q,
      targets.k, given_or_none(targets.v), given_or_none(targets.logits), given_or_none(targets.first_values),
      output_mask);
  return {q_weight, k_weight, first_values, lambda1, lambda2};
}

}  // namespace satformer::ops
