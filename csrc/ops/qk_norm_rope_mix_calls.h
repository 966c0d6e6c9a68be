#pragma once
// The operators as the dispatcher knows them: C++ signatures of the schemas in qk_norm_rope_mix.cpp, typed handles, and
// adapters between the schemas' long argument lists and the structs of qk_norm_rope_mix.h, so that the lists stand
// here alone. For csrc; callers outside use qk_norm_rope_mix.h.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "csrc/ops/checks.h"
#include "csrc/ops/qk_norm_rope_mix.h"

namespace satformer::ops {

using OptionalTensor = std::optional<at::Tensor>;
using Gradients3 = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Gradients5 = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

using MixInputsSignature = Gradients3(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const at::Tensor& cos, const at::Tensor& sin, const OptionalTensor& q_weight,
                                      const OptionalTensor& k_weight, double eps, const OptionalTensor& first_values,
                                      const OptionalTensor& logits, std::string_view gate,
                                      const OptionalTensor& lambda1, const OptionalTensor& lambda2, bool copy_values);
using MixInputsBackwardSignature = Gradients5(
    const at::Tensor& grad_q, const at::Tensor& grad_k, const OptionalTensor& grad_v, const OptionalTensor& q,
    const OptionalTensor& k, const OptionalTensor& v, const at::Tensor& cos, const at::Tensor& sin,
    const OptionalTensor& q_weight, const OptionalTensor& k_weight, double eps, const OptionalTensor& first_values,
    const OptionalTensor& logits, std::string_view gate, const OptionalTensor& lambda1, const OptionalTensor& lambda2,
    const at::Tensor& q_target, const at::Tensor& k_target, const OptionalTensor& v_target,
    const OptionalTensor& logits_target, const OptionalTensor& first_values_target, std::array<bool, 5> output_mask);

const c10::TypedOperatorHandle<MixInputsSignature>& qk_norm_rope_mix_operator();
const c10::TypedOperatorHandle<MixInputsBackwardSignature>& qk_norm_rope_mix_backward_operator();

// Calls the operator for the dispatch keys that are active; v' is undefined where it was not written.
MixOutputs call_qk_norm_rope_mix(const MixInputs& in);

// A function of the structs in the form of the schemas, to be registered under a dispatch key.
template <auto kFunction>
Gradients3 qk_norm_rope_mix_entry(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& cos,
                                  const at::Tensor& sin, const OptionalTensor& q_weight, const OptionalTensor& k_weight,
                                  double eps, const OptionalTensor& first_values, const OptionalTensor& logits,
                                  std::string_view gate, const OptionalTensor& lambda1, const OptionalTensor& lambda2,
                                  bool copy_values) {
  const auto or_undefined = [](const OptionalTensor& x) { return x.value_or(at::Tensor()); };
  const MixOutputs out =
      kFunction(MixInputs{q, k, v, cos, sin, or_undefined(q_weight), or_undefined(k_weight), eps,
                          or_undefined(first_values), or_undefined(logits), check_gate("qk_norm_rope_mix", gate),
                          or_undefined(lambda1), or_undefined(lambda2), copy_values});
  return {out.q, out.k, out.v};
}

template <auto kFunction>
Gradients5 qk_norm_rope_mix_backward_entry(
    const at::Tensor& grad_q, const at::Tensor& grad_k, const OptionalTensor& grad_v, const OptionalTensor& q,
    const OptionalTensor& k, const OptionalTensor& v, const at::Tensor& cos, const at::Tensor& sin,
    const OptionalTensor& q_weight, const OptionalTensor& k_weight, double eps, const OptionalTensor& first_values,
    const OptionalTensor& logits, std::string_view gate, const OptionalTensor& lambda1, const OptionalTensor& lambda2,
    const at::Tensor& q_target, const at::Tensor& k_target, const OptionalTensor& v_target,
    const OptionalTensor& logits_target, const OptionalTensor& first_values_target, std::array<bool, 5> output_mask) {
  const auto or_undefined = [](const OptionalTensor& x) { return x.value_or(at::Tensor()); };
  const MixInputs in{or_undefined(q),
                     or_undefined(k),
                     or_undefined(v),
                     cos,
                     sin,
                     or_undefined(q_weight),
                     or_undefined(k_weight),
                     eps,
                     or_undefined(first_values),
                     or_undefined(logits),
                     check_gate("qk_norm_rope_mix_backward", gate),
                     or_undefined(lambda1),
                     or_undefined(lambda2)};
  const MixGradients out = kFunction(in, MixOutputs{grad_q, grad_k, or_undefined(grad_v)},
                                     MixGradientTargets{q_target, k_target, or_undefined(v_target),
                                                        or_undefined(logits_target), or_undefined(first_values_target)},
                                     output_mask);
  return {out.q_weight, out.k_weight, out.first_values, out.lambda1, out.lambda2};
}

}  // namespace satformer::ops
