#pragma once
// What the exported architectures share: each function gives a node, whose parameters are there, its class and methods.
// The arithmetic is that of satformer/nn, in the order of satformer/nn.
#include <cstdint>
#include <string>

#include "satformer/models/model_config.h"
#include "satformer/models/script/node.h"

namespace satformer::models {

// What enters a layer's attention besides its input, and what leaves it besides its output.
enum class AttentionRole {
  kPlain,     // forward(u, sequence) -> o
  kFirst,     // forward(u, sequence) -> (o, values [B, T, H_kv, hd]), which other layers mix in
  kMixing,    // forward(u, first_values, gating, sequence) -> o
  kSeparate,  // forward(u_q, u_k, u_v, sequence) -> o
};

void write_linear(ScriptNode& linear);
// forward(x) -> y; add(x, pending) -> (x + pending, y).
void write_norm(ScriptNode& norm, double eps);
void write_mlp(ScriptNode& mlp);
// All but value_residual_mixing: forward(u, v, first_values, scale, shift) -> v', gates(u, scale, shift) -> [B, T,
// H_kv].
void write_attention(ScriptNode& attention, const ModelConfig& config, std::int64_t layer, AttentionRole role);
// A pre-norm block on one residual stream, with the arguments of its attention: forward(x, ...) -> x or (x, values).
void write_block(ScriptNode& block, const ModelConfig& config, std::int64_t layer, AttentionRole role);

// Embedding, final norm, and the method sequence(x, caches, kept) -> Sequence. `body` is the rest of the method
//   forward(ids, caches, kept[, gating]) -> hidden
// after `x = E[ids]` and `sequence`: the lines from x [B, T, d] to what the final norm reads, again called x.
void write_trunk(ScriptNode& trunk, const ModelConfig& config, const std::string& body);

// getattr(self.layers, "3"): a name that begins with a digit cannot be written after a dot.
std::string item(const std::string& list, std::int64_t index);

}  // namespace satformer::models
