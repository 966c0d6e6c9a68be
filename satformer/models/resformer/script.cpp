#include <fmt/format.h>

#include "satformer/models/architecture_list.h"
#include "satformer/models/resformer/model.h"
#include "satformer/models/script/blocks.h"
#include "satformer/models/script/parts.h"

namespace satformer::models {
namespace {

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

}  // namespace

void write_resformer_script(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  const auto fixed = fixed_mix(config);
  std::string lines;
  if (!config.mixing_layers().empty()) {
    const std::string lambda1 = fixed ? "self.lambda1" : "self.lambda_manager.forward()";
    lines = fmt::format("    gating = Gating(gating.scale * {}, gating.shift, gating.found)\n", lambda1);
  }
  write_blocks(trunk, config);
  for_each_mixer(trunk, config, [&](ScriptNode& mixer) {
    mixer.class_name = "StaticMix";
    mixer.code = kStaticMix;
    if (fixed) mixer.constants = {{"lambda2", fixed->lambda2}};
  });
  write_trunk(trunk, config, lines + block_lines(config));
  if (fixed) trunk.constants.emplace_back("lambda1", fixed->lambda1);
  if (!trunk.has_child("lambda_manager")) return;
  ScriptNode& manager = trunk.child("lambda_manager");
  manager.class_name = "Lambdas";
  manager.code = kLambdas;
}

}  // namespace satformer::models
