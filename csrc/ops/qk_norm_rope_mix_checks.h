#pragma once
// Checks of the operators' arguments, shared by every dispatch key, and what the kernels write. The checks use symbolic
// sizes so that the same code serves tracing. Each throws a c10::Error that names the operator.
#include <array>
#include <tuple>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "csrc/ops/value_mix.h"

namespace satformer::ops {

// The inputs as the backward takes them: q, k and v may be absent, copy_values does not matter.
struct MixBackwardInputs : MixInputs {
  static constexpr auto fields() {
    using In = MixInputs;
    return std::tuple{maybe(&In::q),
                      maybe(&In::k),
                      maybe(&In::v),
                      &In::cos,
                      &In::sin,
                      maybe(&In::q_weight),
                      maybe(&In::k_weight),
                      &In::eps,
                      maybe(&In::first_values),
                      maybe(&In::logits),
                      &In::gate,
                      maybe(&In::lambda1),
                      maybe(&In::lambda2)};
  }
};

void check_qk_norm_rope_mix(const MixInputs& in);
void check_qk_norm_rope_mix_backward(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets);

inline ValueMix value_mix(const MixInputs& in) {
  if (!in.first_values.defined()) return ValueMix::kNone;
  return in.logits.defined() ? ValueMix::kSelective : ValueMix::kStatic;
}

// For checked arguments: empty outputs, v' undefined where it is not to be written.
MixOutputs outputs_of_qk_norm_rope_mix(const MixInputs& in);
// For checked arguments: empty gradients, undefined where not wanted, or absent with what they are the gradients of, or
// added to a target.
MixGradients outputs_of_qk_norm_rope_mix_backward(const MixInputs& in, const MixGradientTargets& targets,
                                                  std::array<bool, 5> output_mask);
// The gradients with contiguous last dimensions: copies where they are not.
MixOutputs contiguous_rows(const MixOutputs& grads);

}  // namespace satformer::ops
