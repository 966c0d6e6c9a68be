#include "csrc/ops/qk_norm_rope_mix.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/qk_norm_rope_mix_calls.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  // Strides must reach the kernels as the model laid them out: a compiler may not repack a slice of a projection.
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  library.def(
      "qk_norm_rope_mix(Tensor q, Tensor k, Tensor v, Tensor cos, Tensor sin, Tensor? q_weight=None, "
      "Tensor? k_weight=None, float eps=1e-05, Tensor? first_values=None, Tensor? logits=None, str gate=\"relu\", "
      "Tensor? lambda1=None, Tensor? lambda2=None, bool copy_values=True) -> (Tensor, Tensor, Tensor)",
      tags);
  library.def(
      "qk_norm_rope_mix_backward(Tensor grad_q, Tensor grad_k, Tensor? grad_v, Tensor? q, Tensor? k, Tensor? v, "
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

const c10::TypedOperatorHandle<MixInputsSignature>& qk_norm_rope_mix_operator() {
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow("satformer::qk_norm_rope_mix", "").typed<MixInputsSignature>();
  return handle;
}

const c10::TypedOperatorHandle<MixInputsBackwardSignature>& qk_norm_rope_mix_backward_operator() {
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("satformer::qk_norm_rope_mix_backward", "")
                                 .typed<MixInputsBackwardSignature>();
  return handle;
}

MixOutputs call_qk_norm_rope_mix(const MixInputs& in) {
  auto [q, k, v] = qk_norm_rope_mix_operator().call(
      in.q, in.k, in.v, in.cos, in.sin, given_or_none(in.q_weight), given_or_none(in.k_weight), in.eps,
      given_or_none(in.first_values), given_or_none(in.logits), gate_name(in.gate), given_or_none(in.lambda1),
      given_or_none(in.lambda2), in.copy_values);
  return {q, k, v};
}

MixOutputs qk_norm_rope_mix(const MixInputs& in) {
  MixOutputs out = call_qk_norm_rope_mix(in);
  if (!out.v.defined()) out.v = in.v;
  return out;
}

MixGradients qk_norm_rope_mix_backward(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets,
                                       std::array<bool, 5> output_mask) {
  auto [q_weight, k_weight, first_values, lambda1, lambda2] = qk_norm_rope_mix_backward_operator().call(
      grads.q, grads.k, given_or_none(grads.v), given_or_none(in.q), given_or_none(in.k), given_or_none(in.v), in.cos,
      in.sin, given_or_none(in.q_weight), given_or_none(in.k_weight), in.eps, given_or_none(in.first_values),
      given_or_none(in.logits), gate_name(in.gate), given_or_none(in.lambda1), given_or_none(in.lambda2), targets.q,
      targets.k, given_or_none(targets.v), given_or_none(targets.logits), given_or_none(targets.first_values),
      output_mask);
  return {q_weight, k_weight, first_values, lambda1, lambda2};
}

}  // namespace satformer::ops
