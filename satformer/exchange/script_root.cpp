#include "satformer/exchange/script_root.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"
#include "satformer/models/script/parts.h"

namespace satformer::exchange {
namespace {

using models::ModelConfig;
using models::ScriptNode;

// {0}: the head's product, {1}: one more argument of the trunk.
constexpr const char* kRoot = R"(
def hidden(self, ids: Tensor, caches: List[Tensor], kept: Optional[List[Tensor]]) -> Tensor:
    assert ids.dim() == 2 and ids.dtype == 4, "ids must be int64 [B, T]"
    return self.model.forward(ids, caches, kept{1})
def logits(self, hidden: Tensor) -> Tensor:
    return {0}
def forward(self, ids: Tensor) -> Tensor:
    return self.logits(self.hidden(ids, [], None))
def step(self, ids: Tensor, caches: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:
    assert len(caches) == 0 or len(caches) == 2 * self.num_layers, "caches must be [] or what the last step returned"
    kept: List[Tensor] = []
    hidden = self.hidden(ids, caches, kept)
    return self.logits(hidden), kept
)";

constexpr const char* kGates = R"(
def gates(self, ids: Tensor) -> Tensor:
    assert ids.dim() == 2 and ids.dtype == 4, "ids must be int64 [B, T]"
    found: List[Tensor] = []
    self.model.forward(ids, [], None, Gating(self.gate_scale, self.gate_shift, found))
    shape = [self.num_layers, ids.size(0), ids.size(1), self.num_kv_heads]
    gates = torch.zeros(shape, dtype=self.gate_scale.dtype, device=ids.device)
    for i in range(len(found)):
        gates[self.gate_layers[i]] = found[i]
    return gates
def set_gate_intervention(self, scale: Tensor, shift: Tensor) -> None:
    shape = [self.num_layers, self.num_kv_heads]
    new_scale = scale.to(self.gate_scale).expand(shape).clone()
    new_shift = shift.to(self.gate_shift).expand(shape).clone()
    self.gate_scale = new_scale
    self.gate_shift = new_shift
)";

// {0}: the architecture.
constexpr const char* kNoGates = R"(
def gates(self, ids: Tensor) -> Tensor:
    assert len(self.gate_layers) > 0, "gates: this {0} has none; a satformer or resformer that mixes values has"
    return ids
def set_gate_intervention(self, scale: Tensor, shift: Tensor) -> None:
    assert len(self.gate_layers) > 0, "set_gate_intervention: this {0} has no gates"
)";

c10::List<std::int64_t> gate_layers(const ModelConfig& config) {
  c10::List<std::int64_t> layers;
  for (const std::int64_t layer : config.mixing_layers()) layers.push_back(layer);
  return layers;
}

// The public methods (exchange/torchscript.h) on top of the node `model`.
void write_root(ScriptNode& root, const ModelConfig& config) {
  const bool gated = !config.mixing_layers().empty();
  root.class_name = "Model";
  root.code = fmt::format(kRoot,
                          config.tie_word_embeddings ? "torch.linear(hidden, self.model.embeddings.weight)"
                                                     : "self.lm_head.forward(hidden)",
                          gated ? ", Gating(self.gate_scale, self.gate_shift, None)" : "") +
              (gated ? kGates : fmt::format(kNoGates, config.architecture));
  root.constants = {{"architecture", config.architecture},
                    {"vocab_size", config.vocab_size},
                    {"num_layers", config.num_hidden_layers},
                    {"num_kv_heads", config.num_kv_heads},
                    {"gate_layers", gate_layers(config)}};
  if (!config.tie_word_embeddings) models::write_linear(root.child("lm_head"));
  if (!gated) return;
  const auto& embedding = root.child("model.embeddings").parameters.front().second;
  const std::vector<std::int64_t> shape{config.num_hidden_layers, config.num_kv_heads};
  root.buffers = {{"gate_scale", at::ones(shape, embedding.options())},
                  {"gate_shift", at::zeros(shape, embedding.options())}};
}

}  // namespace

void write_script(ScriptNode& root, const ModelConfig& config) {
  using Write = void (*)(ScriptNode&, const ModelConfig&);
#define SATFORMER_SCRIPT(name) models::write_##name##_script,
  static constexpr Write kWrite[] = {SATFORMER_ARCHITECTURES(SATFORMER_SCRIPT)};
#undef SATFORMER_SCRIPT
  kWrite[&models::architecture_of(config) - models::architectures().data()](root, config);
  write_root(root, config);
}

}  // namespace satformer::exchange
