#include <fmt/format.h>

#include "satformer/models/architecture_list.h"
#include "satformer/models/script/parts.h"
#include "satformer/nn/hyper_connection.h"

namespace satformer::models {
namespace {

// {0}: the dynamic part's parameters, or None for each.
constexpr const char* kConnection = R"(
def read(self, streams: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    x, mixed, beta, _ = ops.satformer.hyper_connection_read(streams, self.static_alpha, self.static_beta,
                                                            {0},
                                                            self.norm_eps, self.use_tanh)
    return x, mixed, beta
def write(self, mixed: Tensor, beta: Tensor, y: Tensor) -> Tensor:
    return ops.satformer.hyper_connection_write(mixed, beta, y)
)";

constexpr const char* kHyperConnectionBlock = R"(
def forward(self, streams: Tensor, sequence: Sequence) -> Tensor:
    x, mixed, beta = self.attn_hc.read(streams)
    streams = self.attn_hc.write(mixed, beta, self.attn.forward(self.attn_norm.forward(x), sequence))
    x, mixed, beta = self.mlp_hc.read(streams)
    return self.mlp_hc.write(mixed, beta, self.mlp.forward(self.mlp_norm.forward(x)))
)";

void write_connection(ScriptNode& connection, const ModelConfig& config) {
  const nn::HyperConnectionOptions options{.hidden_size = config.hidden_size,
                                           .expansion_rate = config.expansion_rate,
                                           .index = 0,
                                           .dynamic = config.use_dynamic_hc,
                                           .use_tanh = config.use_tanh,
                                           .layer_norm = config.hc_norm_type == "layer"};
  const std::string dynamic = fmt::format(
      "self.norm.weight, {}, self.dynamic_alpha_proj, self.dynamic_beta_proj, self.dynamic_alpha_scale, "
      "self.dynamic_beta_scale",
      options.layer_norm ? "self.norm.bias" : "None");
  connection.class_name = "HyperConnection";
  connection.code = fmt::format(kConnection, options.dynamic ? dynamic : "None, None, None, None, None, None");
  connection.constants = {{"norm_eps", options.norm_eps()}, {"use_tanh", options.use_tanh}};
}

void write_hyper_connection_layer(ScriptNode& block, const ModelConfig& config, std::int64_t layer) {
  block.class_name = "HyperConnectionBlock";
  block.code = kHyperConnectionBlock;
  for (const char* name : {"attn_norm", "mlp_norm"}) write_norm(block.child(name), config.norm_eps);
  for (const char* name : {"attn_hc", "mlp_hc"}) write_connection(block.child(name), config);
  write_attention(block.child("attn"), config, layer, AttentionRole::kPlain);
  write_mlp(block.child("mlp"));
}

}  // namespace

void write_hyperconnections_script(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  std::string lines = fmt::format("    streams = x.unsqueeze(2).repeat([1, 1, {}, 1])\n", config.expansion_rate);
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    write_hyper_connection_layer(trunk.child(fmt::format("layers.{}", layer)), config, layer);
    lines += fmt::format("    streams = {}.forward(streams, sequence)\n", item("self.layers", layer));
  }
  write_trunk(trunk, config, lines + "    x = streams.sum(2)\n");
}

}  // namespace satformer::models
