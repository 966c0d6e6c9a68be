#include "satformer/bench/trunk.h"

#include <fmt/format.h>

#include <algorithm>

namespace satformer::bench {
namespace {

// Tokens that a token attends to, on average over the sequence: the mean of min(t + 1, window).
double mean_context(std::int64_t seq_length, std::int64_t window) {
  const std::int64_t ramp = std::min(seq_length, window);  // positions that see everything before them
  const double seen = static_cast<double>(ramp) * static_cast<double>(ramp + 1) / 2 +
                      static_cast<double>(seq_length - ramp) * static_cast<double>(ramp);
  return seen / static_cast<double>(seq_length);
}

}  // namespace

Trunk trunk_of(const models::ModelConfig& config) {
  return {.vocab_size = config.vocab_size,
          .hidden_size = config.hidden_size,
          .num_hidden_layers = config.num_hidden_layers,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .intermediate_size = config.intermediate_size,
          .window_size = config.window_size};
}

std::string describe(const Trunk& trunk) {
  std::string text = fmt::format(
      "vocab_size {}, hidden_size {}, num_hidden_layers {}, num_heads {}, num_kv_heads {}, intermediate_size {}",
      trunk.vocab_size, trunk.hidden_size, trunk.num_hidden_layers, trunk.num_heads, trunk.num_kv_heads,
      trunk.intermediate_size);
  if (trunk.window_size) text += fmt::format(", window_size {}", *trunk.window_size);
  return text;
}

double model_flops_per_token(const Trunk& trunk, std::int64_t seq_length) {
  const auto d = static_cast<double>(trunk.hidden_size), f = static_cast<double>(trunk.intermediate_size);
  const auto layers = static_cast<double>(trunk.num_hidden_layers);
  const double layer_weights = d * static_cast<double>(trunk.qkv_size()) + d * d + 3 * d * f;
  const double products = 6 * (layers * layer_weights + d * static_cast<double>(trunk.vocab_size));
  return products + 12 * layers * d * mean_context(seq_length, trunk.window_size.value_or(seq_length));
}

}  // namespace satformer::bench
