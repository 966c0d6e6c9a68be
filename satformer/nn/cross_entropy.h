#pragma once
// The loss of a language model: the cross-entropy of its head's logits.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace satformer::nn {

constexpr std::int64_t kIgnoreIndex = -100;

// Sum over the targets that are not kIgnoreIndex of -log softmax(hidden weight^T)[target], computed and returned in
// float32 (float64 for float64), shape []. Fused, the logits are made in chunks of tokens and never all at once, and
// the gradients are computed in the same pass.
//   hidden  [..., d]   any floating dtype
//   weight  [V, d]     hidden's dtype, or under autocast any
//   targets [...]      int64, the shape of hidden without its last dimension; 0 .. V-1 or kIgnoreIndex
// fused: ops::linear_cross_entropy. Else its composite definition, which holds all logits at once and is differentiable
// any number of times.
at::Tensor linear_cross_entropy_sum(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                    bool fused = true);

}  // namespace satformer::nn
