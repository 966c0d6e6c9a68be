#include "satformer/models/architecture_list.h"
#include "satformer/models/script/blocks.h"
#include "satformer/models/script/parts.h"

namespace satformer::models {
namespace {

constexpr const char* kSelectiveMix = R"(
def forward(self, u: Tensor, v: Tensor, first_values: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return ops.satformer.gated_value_mix(v, first_values, self.alpha_proj.forward(u), self.gate, scale, shift)
def gates(self, u: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    logits = self.alpha_proj.forward(u)
    one = torch.ones_like(logits).unsqueeze(-1)
    return ops.satformer.gated_value_mix(torch.zeros_like(one), one, logits, self.gate, scale, shift).squeeze(-1)
)";

}  // namespace

void write_satformer_script(ScriptNode& root, const ModelConfig& config) {
  ScriptNode& trunk = root.child("model");
  write_blocks(trunk, config);
  write_trunk(trunk, config, block_lines(config));
  for_each_mixer(trunk, config, [&](ScriptNode& mixer) {
    mixer.class_name = "SelectiveMix";
    mixer.code = kSelectiveMix;
    mixer.constants = {{"gate", config.value_residual_gate}};
    write_linear(mixer.child("alpha_proj"));
  });
}

}  // namespace satformer::models
