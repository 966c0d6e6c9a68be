// What is around the layers: embedding, positions and mask, final norm.
#include <fmt/format.h>

#include "satformer/models/script/parts.h"

namespace satformer::models {
namespace {

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

}  // namespace

void write_trunk(ScriptNode& trunk, const ModelConfig& config, const std::string& body) {
  trunk.class_name = "Trunk";
  trunk.code = kSequence + fmt::format(kTrunk, !config.mixing_layers().empty() ? ", gating: Gating" : "", body);
  trunk.constants = {{"head_dim", config.head_dim()},
                     {"rope_theta", config.rope_theta},
                     {"window_size", config.window_size.value_or(0)}};
  ScriptNode& embeddings = trunk.child("embeddings");
  embeddings.class_name = "Embedding";
  embeddings.code = kEmbedding;
  write_norm(trunk.child("norm"), config.norm_eps);
}

}  // namespace satformer::models
