#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace satformer::nn {

constexpr std::int64_t kIgnoreIndex = -100;

// Sum over the targets that are not kIgnoreIndex of -log softmax(hidden weight^T)[target], computed and returned in
// float32 (float64 for float64), shape []. The logits are made in chunks of tokens and never all at once; the gradients
// are computed in the same pass.
//   hidden  [..., d]   any floating dtype
//   weight  [V, d]     hidden's dtype, or under autocast any
//   targets [...]      int64, the shape of hidden without its last dimension; 0 .. V-1 or kIgnoreIndex
at::Tensor linear_cross_entropy_sum(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets);

}  // namespace satformer::nn
