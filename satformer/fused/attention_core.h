#pragma once
// From projected queries, keys, values and gate logits to attention's output, with a backward that keeps the
// projections alone and makes everything else again.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "satformer/nn/attention_context.h"

namespace satformer::nn {

struct AttentionCore {
  std::int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  // The projections side by side: [B, T, (H + 2 H_kv) hd + gates], or three tensors [B, T, H hd], [B, T, H_kv hd] and
  // [B, T, H_kv hd + gates]. Gates: H_kv with a selective mix, else 0.
  std::vector<at::Tensor> projected = {};
  // cos, sin, weights, eps, first_values, gate and lambdas; q, k, v and logits are views of `projected` to be set here.
  ops::MixInputs inputs = {};
  bool selective = false;
  at::Tensor mask;  // this and the next two as AttentionContext's
  std::optional<Documents> documents = {};
  std::optional<std::int64_t> window_size = {};
  bool returns_values = false;
};

struct AttentionCoreOutput {
  at::Tensor attended;  // [B, T, H hd]
  at::Tensor values;    // with returns_values: [B, T, H_kv, hd], raw
};

AttentionCoreOutput attention_core(const AttentionCore& core);

// Sets q, k, v and logits of `inputs`: views of `projected`.
void view_projections(const std::vector<at::Tensor>& projected, const AttentionCore& core, ops::MixInputs& inputs);

}  // namespace satformer::nn
