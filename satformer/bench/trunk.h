#pragma once
// The work that every architecture shares: the trunk's matrix products and attention.
#include <cstdint>
#include <optional>
#include <string>

#include "satformer/models/model_config.h"

namespace satformer::bench {

struct Trunk {
  std::int64_t vocab_size = 0, hidden_size = 0, num_hidden_layers = 0, num_heads = 0, num_kv_heads = 0;
  std::int64_t intermediate_size = 0;
  std::optional<std::int64_t> window_size{};

  std::int64_t head_dim() const { return hidden_size / num_heads; }
  // Rows of the q, k and v projections together: (H + 2 H_kv) hd.
  std::int64_t qkv_size() const { return (num_heads + 2 * num_kv_heads) * head_dim(); }
  bool operator==(const Trunk&) const = default;
};

Trunk trunk_of(const models::ModelConfig& config);

// "hidden_size 256, num_hidden_layers 8, ...", for messages.
std::string describe(const Trunk& trunk);

// Floating-point operations of one training step a token, forward and backward (three times the forward), without any
// recomputation: the products of the trunk and of the head, and attention over the tokens that the mask leaves
// (causal: (T + 1) / 2 on average; the usual "6 N + 12 L d T" counts all T).
//   6 (L (d (H + 2 H_kv) hd + H hd d + 3 d f) + d V) + 12 L H hd context
// What an architecture adds to the trunk does not count: it is cost, not model.
double model_flops_per_token(const Trunk& trunk, std::int64_t seq_length);

}  // namespace satformer::bench
