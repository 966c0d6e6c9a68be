#pragma once
// What all layers of one forward pass share: the rotation of each position, and who attends to whom. Plain tensors;
// satformer/nn/attention_context.h makes them.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace satformer::fused {

// cos and sin of each position's angles (satformer/nn/rotary.h): [T, 1, hd/2] or, with positions of each batch row,
// [B, T, 1, hd/2]; float32 or float64.
struct RotaryTables {
  at::Tensor cos;
  at::Tensor sin;
};

// Documents that follow one another in B rows of T tokens, none in more than one row.
struct Documents {
  at::Tensor offsets;  // int32 [n + 1]: where each begins among the B T tokens, then B T
  std::int64_t longest = 0;
};

struct AttentionContext {
  RotaryTables rotary;
  // Added to the attention scores: 0 or -infinity, [T, T] or [B, 1, T, T]. Undefined: causal and nothing else, which
  // the attention kernels know how to do without a mask.
  at::Tensor mask = {};
  // In place of a mask, where the attention kernel takes documents of any length (CUDA in bfloat16 or float16); then
  // also the window, absent without one.
  std::optional<Documents> documents = {};
  std::optional<std::int64_t> window_size = {};
};

}  // namespace satformer::fused
