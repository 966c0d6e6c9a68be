#pragma once
// Checks of the operators' arguments, shared by every dispatch key, and what the kernels write. The checks use symbolic
// sizes so that the same code serves tracing. Each throws a c10::Error that names the operator.
#include <array>

#include "csrc/ops/attention_inputs.h"
#include "csrc/ops/value_mix.h"

namespace satformer::ops {

void check_attention_inputs(const AttentionInputs& in);
void check_attention_inputs_backward(const AttentionInputs& in, const AttentionOperands& grads,
                                     const AttentionInputTargets& targets);

inline ValueMix value_mix(const AttentionInputs& in) {
  if (!in.first_values.defined()) return ValueMix::kNone;
  return in.logits.defined() ? ValueMix::kSelective : ValueMix::kStatic;
}

// For checked arguments: empty outputs, v' undefined where it is not to be written.
AttentionOperands empty_operands(const AttentionInputs& in);
// For checked arguments: empty gradients, undefined where not wanted, or absent with what they are the gradients of, or
// added to a target.
AttentionInputGradients empty_gradients(const AttentionInputs& in, const AttentionInputTargets& targets,
                                        std::array<bool, 5> output_mask);
// The gradients with contiguous last dimensions: copies where they are not.
AttentionOperands contiguous_rows(const AttentionOperands& grads);

}  // namespace satformer::ops
