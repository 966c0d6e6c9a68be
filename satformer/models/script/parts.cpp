#include "satformer/models/script/parts.h"

#include <fmt/format.h>

namespace satformer::models {
namespace {

constexpr const char* kLinear = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.weight)
)";

constexpr const char* kLinearWithBias = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.linear(x, self.weight, self.bias)
)";

constexpr const char* kNorm = R"(
def forward(self, x: Tensor) -> Tensor:
    y, _ = ops.satformer.rms_norm(x, self.weight, self.eps)
    return y
def add(self, x: Tensor, pending: Tensor) -> Tuple[Tensor, Tensor]:
    total, y, _ = ops.satformer.add_rms_norm(x, pending, self.weight, self.eps)
    return total, y
)";

constexpr const char* kMlp = R"(
def forward(self, u: Tensor) -> Tensor:
    packed = torch.cat([self.gate_proj.forward(u), self.up_proj.forward(u)], -1)
    return self.down_proj.forward(ops.satformer.swiglu(packed))
)";

// {0}, {1}: weights of the query and key norms. qk_norm_rope_mix leaves v alone here, and returns None for it.
constexpr const char* kAttend = R"(
def heads(self, x: Tensor) -> Tensor:
    return x.unflatten(-1, [-1, self.head_dim])
def attend(self, q: Tensor, k: Tensor, v: Tensor, sequence: Sequence) -> Tensor:
    q, k, _ = ops.satformer.qk_norm_rope_mix(q, k, v, sequence.cos, sequence.sin, {0}, {1}, self.qk_norm_eps,
                                             copy_values=False)
    if len(sequence.caches) > 0:
        k = torch.cat([sequence.caches[2 * self.layer], k], 1)
        v = torch.cat([sequence.caches[2 * self.layer + 1], v], 1)
    kept = sequence.kept
    if kept is not None:
        kept.append(k)
        kept.append(v)
    attended = q
    if q.numel() > 0:
        attended = torch.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                                      sequence.mask, 0.0, sequence.causal, enable_gqa=self.grouped)
        attended = attended.transpose(1, 2)
    return self.o_proj.forward(attended.flatten(2))
)";

constexpr const char* kPlainAttention = R"(
def forward(self, u: Tensor, sequence: Sequence) -> Tensor:
    q = self.heads(self.q_proj.forward(u))
    k = self.heads(self.k_proj.forward(u))
    v = self.heads(self.v_proj.forward(u))
    return self.attend(q, k, v, sequence)
)";

constexpr const char* kFirstAttention = R"(
def forward(self, u: Tensor, sequence: Sequence) -> Tuple[Tensor, Tensor]:
    q = self.heads(self.q_proj.forward(u))
    k = self.heads(self.k_proj.forward(u))
    v = self.heads(self.v_proj.forward(u))
    return self.attend(q, k, v, sequence), v
)";

constexpr const char* kMixingAttention = R"(
def forward(self, u: Tensor, first_values: Tensor, gating: Gating, sequence: Sequence) -> Tensor:
    scale = gating.scale[self.layer]
    shift = gating.shift[self.layer]
    found = gating.found
    if found is not None:
        found.append(self.value_residual_mixing.gates(u, scale, shift))
    q = self.heads(self.q_proj.forward(u))
    k = self.heads(self.k_proj.forward(u))
    v = self.heads(self.v_proj.forward(u))
    v = self.value_residual_mixing.forward(u, v, first_values, scale, shift)
    return self.attend(q, k, v, sequence)
)";

constexpr const char* kSeparateAttention = R"(
def forward(self, u_q: Tensor, u_k: Tensor, u_v: Tensor, sequence: Sequence) -> Tensor:
    q = self.heads(self.q_proj.forward(u_q))
    k = self.heads(self.k_proj.forward(u_k))
    v = self.heads(self.v_proj.forward(u_v))
    return self.attend(q, k, v, sequence)
)";

constexpr const char* kPlainBlock = R"(
def forward(self, x: Tensor, sequence: Sequence) -> Tensor:
    attended = self.attn.forward(self.attn_norm.forward(x), sequence)
    x, u = self.mlp_norm.add(x, attended)
    return x + self.mlp.forward(u)
)";

constexpr const char* kFirstBlock = R"(
def forward(self, x: Tensor, sequence: Sequence) -> Tuple[Tensor, Tensor]:
    attended, values = self.attn.forward(self.attn_norm.forward(x), sequence)
    x, u = self.mlp_norm.add(x, attended)
    return x + self.mlp.forward(u), values
)";

constexpr const char* kMixingBlock = R"(
def forward(self, x: Tensor, first_values: Tensor, gating: Gating, sequence: Sequence) -> Tensor:
    attended = self.attn.forward(self.attn_norm.forward(x), first_values, gating, sequence)
    x, u = self.mlp_norm.add(x, attended)
    return x + self.mlp.forward(u)
)";

const char* attention_code(AttentionRole role) {
  switch (role) {
    case AttentionRole::kPlain:
      return kPlainAttention;
    case AttentionRole::kFirst:
      return kFirstAttention;
    case AttentionRole::kMixing:
      return kMixingAttention;
    case AttentionRole::kSeparate:
      return kSeparateAttention;
  }
  return "";
}

const char* block_code(AttentionRole role) {
  if (role == AttentionRole::kFirst) return kFirstBlock;
  return role == AttentionRole::kMixing ? kMixingBlock : kPlainBlock;
}

const char* prefix(AttentionRole role) {
  switch (role) {
    case AttentionRole::kPlain:
      return "";
    case AttentionRole::kFirst:
      return "First";
    case AttentionRole::kMixing:
      return "Mixing";
    case AttentionRole::kSeparate:
      return "Separate";
  }
  return "";
}

}  // namespace

void write_linear(ScriptNode& linear) {
  linear.class_name = "Linear";
  linear.code = linear.has_parameter("bias") ? kLinearWithBias : kLinear;
}

void write_norm(ScriptNode& norm, double eps) {
  norm.class_name = "RMSNorm";
  norm.code = kNorm;
  norm.constants = {{"eps", eps}};
}

void write_mlp(ScriptNode& mlp) {
  mlp.class_name = "MLP";
  mlp.code = kMlp;
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) write_linear(mlp.child(name));
}

void write_attention(ScriptNode& attention, const ModelConfig& config, std::int64_t layer, AttentionRole role) {
  attention.class_name = fmt::format("{}Attention", prefix(role));
  attention.code = config.qk_norm ? fmt::format(kAttend, "self.q_norm.weight", "self.k_norm.weight")
                                  : fmt::format(kAttend, "None", "None");
  attention.code += attention_code(role);
  attention.constants = {{"layer", layer},
                         {"head_dim", config.head_dim()},
                         {"grouped", config.num_heads != config.num_kv_heads},
                         {"qk_norm_eps", config.qk_norm_eps}};
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) write_linear(attention.child(name));
  if (!config.qk_norm) return;
  for (const char* name : {"q_norm", "k_norm"}) write_norm(attention.child(name), config.qk_norm_eps);
}

void write_block(ScriptNode& block, const ModelConfig& config, std::int64_t layer, AttentionRole role) {
  block.class_name = fmt::format("{}Block", prefix(role));
  block.code = block_code(role);
  for (const char* name : {"attn_norm", "mlp_norm"}) write_norm(block.child(name), config.norm_eps);
  write_attention(block.child("attn"), config, layer, role);
  write_mlp(block.child("mlp"));
}

std::string item(const std::string& list, std::int64_t index) {
  return fmt::format("getattr({}, \"{}\")", list, index);
}

}  // namespace satformer::models
