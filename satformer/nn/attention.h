#pragma once
// The attention module: its parameters, and its forward pass on the fused path. The plain path is in
// plain_attention.h, and reads like the equations.
#include <cstdint>
#include <memory>
#include <vector>

#include "satformer/fused/attention.h"
#include "satformer/fused/norm_linear.h"
#include "satformer/nn/layer_context.h"
#include "satformer/nn/linear.h"
#include "satformer/nn/rms_norm.h"
#include "satformer/nn/value_mixer.h"

namespace satformer::nn {

struct AttentionOptions {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  // divides num_heads; query head h reads KV head h / (num_heads / num_kv_heads)
  bool qkv_bias = false;
  bool qk_norm = false;
  double qk_norm_eps = 1e-5;
  bool separate_sources = false;  // queries, keys and values read streams of their own (MUDDFormer)
  bool returns_values = false;    // other layers read this one's values (layer 0 of ResFormer and SATFormer)

  std::int64_t head_dim() const { return hidden_size / num_heads; }
};

// A stream and the norm through which attention reads it.
struct AttentionSource {
  const ResidualStream& stream;
  const RMSNorm& norm;
};

struct AttentionOutput {
  at::Tensor hidden;  // [B, T, d]
  at::Tensor sum;     // the (first) source's stream, nothing pending
  at::Tensor values;  // with returns_values: [B, T, H_kv, hd], raw: after Wv, before any norm, rotation or mix
};

// Causal grouped-query attention with optional qk-norm, rotary positions and a value mixer, u the normalised source:
//   q = u Wq, k = u Wk, v = u Wv;  v' = mixer(v, v1);  q, k = RoPE(RMSNorm(q)), RoPE(RMSNorm(k))
//   hidden = softmax(q k^T / sqrt(hd) + mask) v' Wo
// Fused, one matrix product gives q, k, v and a gate's logits, and one pass makes of them what the attention kernel
// reads.
class AttentionImpl : public torch::nn::Module {
 public:
  // `mixer` is registered as value_residual_mixing; null: none.
  AttentionImpl(const AttentionOptions& options, std::shared_ptr<ValueMixer> mixer, const at::TensorOptions& tensors);
  // sources: one; with separate_sources those of queries, keys and values. residual: needed where there is a mixer.
  AttentionOutput forward(const std::vector<AttentionSource>& sources, const ValueResidual& residual,
                          const LayerContext& context);

  const AttentionOptions& options() const { return options_; }

  Linear q_proj{nullptr};                    // [H hd, d]
  Linear k_proj{nullptr};                    // [H_kv hd, d]
  Linear v_proj{nullptr};                    // [H_kv hd, d]
  Linear o_proj{nullptr};                    // [d, H hd]
  RMSNorm q_norm{nullptr}, k_norm{nullptr};  // [hd], one weight for all heads; empty without qk_norm
  std::shared_ptr<ValueMixer> value_residual_mixing;

 private:
  AttentionOutput fused_forward(const std::vector<AttentionSource>& sources, const ValueResidual& residual,
                                const LayerContext& context);

  AttentionOptions options_;
  std::vector<fused::PackedWeight> projections_;  // one a source: [q | k | v | logits], or q, k, [v | logits]
  fused::PackedWeight output_;
};
TORCH_MODULE(Attention);

}  // namespace satformer::nn
