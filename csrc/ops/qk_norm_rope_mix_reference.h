#pragma once
// The pass before attention in plain ATen calls: the definition that the kernels are held to, and what the second
// derivative uses. Any device, any floating dtype, any strides; differentiable any number of times.
#include <ATen/core/Tensor.h>

#include "csrc/ops/qk_norm_rope_mix.h"

namespace satformer::ops {

// As qk_norm_rope_mix (csrc/ops/qk_norm_rope_mix.h), except that first_values is always read: 0 * NaN is NaN here.
MixOutputs qk_norm_rope_mix_reference(const MixInputs& in);

// As qk_norm_rope_mix_backward: its formulas, written out. Nothing is written in place; all gradients are returned.
struct AllMixGradients {
  at::Tensor q, k, v, logits;
  MixGradients others;
};
AllMixGradients qk_norm_rope_mix_backward_reference(const MixInputs& in, const MixOutputs& grads);

}  // namespace satformer::ops
