#include "satformer/models/script/blocks.h"

#include <fmt/format.h>

#include "satformer/models/script/parts.h"

namespace satformer::models {
namespace {

AttentionRole role_of(const ModelConfig& config, std::int64_t layer) {
  if (config.mixes_values(layer)) return AttentionRole::kMixing;
  return layer == 0 && !config.mixing_layers().empty() ? AttentionRole::kFirst : AttentionRole::kPlain;
}

}  // namespace

std::string block_lines(const ModelConfig& config) {
  std::string lines;
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string block = item("self.layers", layer);
    switch (role_of(config, layer)) {
      case AttentionRole::kFirst:
        lines += fmt::format("    x, first_values = {}.forward(x, sequence)\n", block);
        break;
      case AttentionRole::kMixing:
        lines += fmt::format("    x = {}.forward(x, first_values, gating, sequence)\n", block);
        break;
      default:
        lines += fmt::format("    x = {}.forward(x, sequence)\n", block);
    }
  }
  return lines;
}

void write_blocks(ScriptNode& trunk, const ModelConfig& config) {
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    write_block(trunk.child(fmt::format("layers.{}", layer)), config, layer, role_of(config, layer));
  }
}

void for_each_mixer(ScriptNode& trunk, const ModelConfig& config, const std::function<void(ScriptNode&)>& write) {
  for (const std::int64_t layer : config.mixing_layers()) {
    write(trunk.child(fmt::format("layers.{}.attn.value_residual_mixing", layer)));
  }
}

}  // namespace satformer::models
