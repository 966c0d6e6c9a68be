#include <fmt/format.h>

#include "satformer/models/architecture_list.h"
#include "satformer/models/script/parts.h"

namespace satformer::models {
namespace {

constexpr const char* kMultiwayBlock = R"(
def forward(self, streams: List[Tensor], sequence: Sequence) -> Tensor:
    u_q = self.attn_norm_q.forward(streams[0])
    u_k = self.attn_norm_k.forward(streams[1])
    u_v = self.attn_norm_v.forward(streams[2])
    attended = self.attn.forward(u_q, u_k, u_v, sequence)
    x, u = self.mlp_norm.add(streams[3], attended)
    return x + self.mlp.forward(u)
)";

// The embedding and the blocks' outputs so far, each with its inverse norm, to the next block's streams. {0}: base,
// {1} and {3}: the weights of the sources' and the sums' norms, {2}: the sources' inverse norms.
constexpr const char* kAggregate = R"(
def forward(self, outputs: List[Tensor], inverse: List[Tensor]) -> List[Tensor]:
    x = outputs[-1]
    normalized = x * inverse[-1].unsqueeze(-1)
    dynamic = self.w2.forward(torch.gelu(self.w1.forward(normalized)))
    weights = dynamic.unflatten(-1, [self.num_ways, -1]) + self.static_weight
    return ops.satformer.depth_weighted_sum(outputs, weights, {0}, {1}, {2}, {3}, self.eps)
)";

// [getattr(self.LIST, "0").weight, ...]
std::string weights_of(const std::string& list, std::int64_t count) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}.weight", text.empty() ? "[" : ", ", item("self." + list, i));
  }
  return text + "]";
}

void write_aggregate(ScriptNode& aggregate, const ModelConfig& config, std::int64_t layer) {
  const std::int64_t ways = layer + 1 < config.num_hidden_layers ? config.num_ways : 1;
  aggregate.class_name = "DepthAggregate";
  aggregate.code = config.use_pre_post_da_norm ? fmt::format(kAggregate, "x", weights_of("pre_da_norms", layer + 2),
                                                             "inverse", weights_of("post_da_norms", ways))
                                               : fmt::format(kAggregate, "None", "[]", "[]", "[]");
  aggregate.constants = {{"num_ways", ways}, {"eps", config.norm_eps}};
  for (const char* name : {"w1", "w2"}) write_linear(aggregate.child(name));
}

void write_multiway_layer(ScriptNode& block, const ModelConfig& config, std::int64_t layer) {
  block.class_name = "MultiwayBlock";
  block.code = kMultiwayBlock;
  for (const char* name : {"attn_norm_q", "attn_norm_k", "attn_norm_v", "mlp_norm"}) {
    write_norm(block.child(name), config.norm_eps);
  }
  write_attention(block.child("attn"), config, layer, AttentionRole::kSeparate);
  write_mlp(block.child("mlp"));
  write_aggregate(block.child("da"), config, layer);
}

}  // namespace

void write_muddformer_script(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  std::string lines =
      "    outputs = [x]\n"
      "    inverse = [ops.satformer.inverse_rms(x, self.norm.eps)]\n"
      "    streams = [x, x, x, x]\n";  // queries, keys, values, residual
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string block = item("self.layers", layer);
    write_multiway_layer(trunk.child(fmt::format("layers.{}", layer)), config, layer);
    lines += fmt::format("    x = {}.forward(streams, sequence)\n", block);
    lines += "    outputs.append(x)\n    inverse.append(ops.satformer.inverse_rms(x, self.norm.eps))\n";
    lines += fmt::format("    streams = {}.da.forward(outputs, inverse)\n", block);
  }
  write_trunk(trunk, config, lines + "    x = streams[-1]\n");
}

}  // namespace satformer::models
