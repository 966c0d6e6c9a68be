#pragma once
// The arguments of the operators as one struct, their checks, shared by every dispatch key, and the form the kernels
// take them in. The checks use symbolic sizes so that the same code serves tracing. Each throws a c10::Error that names
// the operator.
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

#include "csrc/ops/gate.h"

namespace satformer::ops {

struct GatedValueMixArguments {
  at::Tensor values;  // v; of the backward the gradient of v'
  at::Tensor first_values, logits;
  Gate gate = Gate::kRelu;
  std::optional<at::Tensor> scale, shift;

  static constexpr auto fields() {
    using In = GatedValueMixArguments;
    return std::tuple{&In::values, &In::first_values, &In::logits, &In::gate, &In::scale, &In::shift};
  }
};

// gated_value_mix and, with in_place, gated_value_mix_ (v may then not overlap itself or part of another argument).
void check_gated_value_mix(const GatedValueMixArguments& in, bool in_place);
void check_gated_value_mix_backward(const GatedValueMixArguments& in);

// What the kernels need to know of the gates; made of checked arguments.
struct GateArguments {
  Gate gate;
  at::Tensor logits;  // [B, T, H_kv]
  at::Tensor scale;   // expanded to logits' shape, or undefined: 1
  at::Tensor shift;   // expanded to logits' shape, or undefined: 0
};
GateArguments gate_arguments(const GatedValueMixArguments& in);

// output_mask without the gradients of an absent scale or shift.
std::array<bool, 4> wanted_gradients(std::array<bool, 4> output_mask, const std::optional<at::Tensor>& scale,
                                     const std::optional<at::Tensor>& shift);

// What a backward kernel writes: contiguous, undefined where no gradient is wanted.
struct GatedValueMixGradients {
  at::Tensor first_values;  // [B, T, H_kv, hd], first_values' dtype
  at::Tensor logits;        // [B, T, H_kv], logits' dtype
  at::Tensor scale_terms;   // [B, T, H_kv], arithmetic dtype: alpha * d alpha', not yet summed to scale's shape
  at::Tensor shift_terms;   // [B, T, H_kv], arithmetic dtype: d alpha'
};
GatedValueMixGradients outputs_of_gated_value_mix_backward(const GatedValueMixArguments& in,
                                                           const std::array<bool, 4>& output_mask);

// Sums `terms` over the broadcast dimensions to the shape of `like` and rounds to its dtype. Undefined stays undefined.
at::Tensor sum_terms(const at::Tensor& terms, const std::optional<at::Tensor>& like);

}  // namespace satformer::ops
