#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace satformer::nn {

constexpr std::int64_t kIgnoreIndex = -100;

// Sum over the targets that are not kIgnoreIndex of -log softmax(logits)[target], computed and returned in float32
// (float64 for float64 logits), shape [].
//   logits  [..., V]   any floating dtype
//   targets [...]      int64, the shape of logits without its last dimension; 0 .. V-1 or kIgnoreIndex
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace satformer::nn
