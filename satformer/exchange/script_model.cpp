// The trunk and the public methods of an exported model.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "satformer/exchange/script_parts.h"

namespace satformer::exchange {
namespace {

using models::ModelConfig;

constexpr const char* kEmbedding = R"(
def forward(self, ids: Tensor) -> Tensor:
    return torch.embedding(self.weight, ids)
)";

// Angles in float64 (dtype 7), as nn::make_rotary_tables computes them. A mask only where causal attention over
// the keys at hand does not say it all. window_size 0: none.
constexpr const char* kSequence = R"(
def sequence(self, x: Tensor, caches: List[Tensor], kept: Optional[List[Tensor]]) -> Sequence:
    past = 0
    if len(caches) > 0:
        past = caches[0].size(1)
    total = past + x.size(1)
    positions = torch.arange(past, total, dtype=7, device=x.device)
    exponents = torch.arange(0, self.head_dim, 2, dtype=7, device=x.device) / self.head_dim
    frequencies = torch.reciprocal(torch.pow(self.rope_theta, exponents))
    angles = positions.unsqueeze(-1).unsqueeze(-1) * frequencies
    cos = angles.cos()
    sin = angles.sin()
    if x.dtype != 7:
        cos = cos.float()
        sin = sin.float()
    windowed = self.window_size > 0 and self.window_size < total
    causal = past == 0 and not windowed
    mask: Optional[Tensor] = None
    if windowed or (past > 0 and x.size(1) > 1):
        distance = torch.arange(past, total, device=x.device).unsqueeze(1) - torch.arange(total, device=x.device)
        unseen = distance < 0
        if windowed:
            unseen = unseen.logical_or(distance >= self.window_size)
        mask = torch.zeros(unseen.size(), dtype=x.dtype, device=x.device).masked_fill(unseen, float("-inf"))
    return Sequence(cos, sin, mask, causal, caches, kept)
)";

// {0}: one more parameter, {1}: the architecture's lines.
constexpr const char* kTrunk = R"(
def forward(self, ids: Tensor, caches: List[Tensor], kept: Optional[List[Tensor]]{0}) -> Tensor:
    x = self.embeddings.forward(ids)
    sequence = self.sequence(x, caches, kept)
{1}    return self.norm.forward(x)
)";

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
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.mixes_values(layer)) layers.push_back(layer);
  }
  return layers;
}

}  // namespace

void write_trunk(ScriptNode& trunk, const ModelConfig& config, const std::string& body) {
  trunk.class_name = "Trunk";
  trunk.code = kSequence + fmt::format(kTrunk, has_gates(config) ? ", gating: Gating" : "", body);
  trunk.constants = {{"head_dim", config.head_dim()},
                     {"rope_theta", config.rope_theta},
                     {"window_size", config.window_size.value_or(0)}};
  ScriptNode& embeddings = trunk.child("embeddings");
  embeddings.class_name = "Embedding";
  embeddings.code = kEmbedding;
  write_norm(trunk.child("norm"), config.norm_eps);
}

void write_root(ScriptNode& root, const ModelConfig& config) {
  const bool gated = has_gates(config);
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
  if (!config.tie_word_embeddings) write_linear(root.child("lm_head"));
  if (!gated) return;
  const auto& embedding = root.child("model.embeddings").parameters.front().second;
  const std::vector<std::int64_t> shape{config.num_hidden_layers, config.num_kv_heads};
  root.buffers = {{"gate_scale", at::ones(shape, embedding.options())},
                  {"gate_shift", at::zeros(shape, embedding.options())}};
}

}  // namespace satformer::exchange
