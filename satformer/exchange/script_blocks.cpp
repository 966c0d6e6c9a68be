// The architectures whose layers are pre-norm blocks on one residual stream.
#include <fmt/format.h>

#include "satformer/exchange/script_architectures.h"
#include "satformer/exchange/script_parts.h"
#include "satformer/models/resformer.h"

namespace satformer::exchange {
namespace {

using models::ModelConfig;

constexpr const char* kSelectiveMix = R"(
def forward(self, u: Tensor, v: Tensor, first_values: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return ops.satformer.gated_value_mix(v, first_values, self.alpha_proj.forward(u), self.gate, scale, shift)
def gates(self, u: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    logits = self.alpha_proj.forward(u)
    one = torch.ones_like(logits).unsqueeze(-1)
    return ops.satformer.gated_value_mix(torch.zeros_like(one), one, logits, self.gate, scale, shift).squeeze(-1)
)";

// A gate that is 1 for every token; scale is lambda1 times the intervention's.
constexpr const char* kStaticMix = R"(
def forward(self, u: Tensor, v: Tensor, first_values: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    one = torch.ones_like(v.select(-1, 0))
    return ops.satformer.gated_value_mix(self.lambda2 * v, first_values, one, "identity", scale, shift)
def gates(self, u: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return (scale + shift).expand([u.size(0), u.size(1), -1])
)";

// lambda1 of each layer, [L, 1]; layer 0 mixes nothing.
constexpr const char* kLambdas = R"(
def forward(self) -> Tensor:
    lambda1 = self.lambda_scale * torch.softmax(self.lambda_logits, 0)
    return torch.cat([lambda1.new_zeros([1]), lambda1]).unsqueeze(1)
)";

AttentionRole role_of(const ModelConfig& config, std::int64_t layer) {
  if (config.mixes_values(layer)) return AttentionRole::kMixing;
  return layer == 0 && has_gates(config) ? AttentionRole::kFirst : AttentionRole::kPlain;
}

// x = block(x): the lines of all layers in their order, with what they pass on.
std::string layer_lines(const ModelConfig& config) {
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

// The mixing layer's node value_residual_mixing.
template <typename Write>
void for_each_mixer(ScriptNode& trunk, const ModelConfig& config, const Write& write) {
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.mixes_values(layer)) write(trunk.child(fmt::format("layers.{}.attn.value_residual_mixing", layer)));
  }
}

}  // namespace

void write_transformer(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  write_blocks(trunk, config);
  write_trunk(trunk, config, layer_lines(config));
}

void write_satformer(ScriptNode& root, const ModelConfig& config) {
  write_transformer(root, config);
  for_each_mixer(root.child("model"), config, [&](ScriptNode& mixer) {
    mixer.class_name = "SelectiveMix";
    mixer.code = kSelectiveMix;
    mixer.constants = {{"gate", config.value_residual_gate}};
    write_linear(mixer.child("alpha_proj"));
  });
}

void write_resformer(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  const auto fixed = models::fixed_mix(config);
  std::string lines;
  if (has_gates(config)) {
    const std::string lambda1 = fixed ? "self.lambda1" : "self.lambda_manager.forward()";
    lines = fmt::format("    gating = Gating(gating.scale * {}, gating.shift, gating.found)\n", lambda1);
  }
  write_blocks(trunk, config);
  for_each_mixer(trunk, config, [&](ScriptNode& mixer) {
    mixer.class_name = "StaticMix";
    mixer.code = kStaticMix;
    if (fixed) mixer.constants = {{"lambda2", fixed->lambda2}};
  });
  write_trunk(trunk, config, lines + layer_lines(config));
  if (fixed) trunk.constants.emplace_back("lambda1", fixed->lambda1);
  if (!trunk.has_child("lambda_manager")) return;
  ScriptNode& manager = trunk.child("lambda_manager");
  manager.class_name = "Lambdas";
  manager.code = kLambdas;
}

void write_denseformer(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  write_blocks(trunk, config);
  // x0 the embedding, x1, x2, ... the blocks' outputs; x what the next block reads.
  std::string lines = "    x0 = x\n";
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::int64_t newest = layer + 1;
    lines += fmt::format("    x{} = {}.forward(x, sequence)\n", newest, item("self.layers", layer));
    if (newest % config.dwa_period != 0) {
      lines += fmt::format("    x = x{}\n", newest);
      continue;
    }
    std::string sources;  // oldest first, like the weights
    for (std::int64_t j = newest % config.dwa_dilation; j <= newest; j += config.dwa_dilation) {
      sources += fmt::format("{}x{}", sources.empty() ? "" : ", ", j);
    }
    lines += fmt::format("    x = ops.satformer.depth_weighted_sum([{}], {}.weight, None, [], [], [], 1e-06)[0]\n",
                         sources, item("self.dwa_modules.alphas", layer));
  }
  write_trunk(trunk, config, lines);
}

}  // namespace satformer::exchange
