#pragma once
// The pass before attention in plain ATen calls: the definition that the kernels are held to, and what the second
// derivative uses. Any device, any floating dtype, any strides; differentiable any number of times.
#include <ATen/core/Tensor.h>

#include "csrc/ops/attention_inputs.h"

namespace satformer::ops {

// As attention_inputs (csrc/ops/attention_inputs.h), except that first_values is always read: 0 * NaN is NaN here.
AttentionOperands attention_inputs_reference(const AttentionInputs& in);

// As attention_inputs_backward: its formulas, written out. Nothing is written in place; all gradients are returned.
struct AttentionInputAllGradients {
  at::Tensor q, k, v, logits;
  AttentionInputGradients others;
};
AttentionInputAllGradients attention_inputs_backward_reference(const AttentionInputs& in,
                                                               const AttentionOperands& grads);

}  // namespace satformer::ops
