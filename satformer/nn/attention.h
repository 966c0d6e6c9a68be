#pragma once
#include <cstdint>
#include <memory>

#include "satformer/nn/linear.h"
#include "satformer/nn/observer.h"
#include "satformer/nn/rms_norm.h"
#include "satformer/nn/sequence.h"
#include "satformer/nn/value_mixer.h"

namespace satformer::nn {

struct AttentionOptions {
  std::int64_t hidden_size = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  // divides num_heads; query head h reads KV head h / (num_heads / num_kv_heads)
  bool qkv_bias = false;
  bool qk_norm = false;
  double qk_norm_eps = 1e-5;
};

// Tensors are shared, not copied. MUDDFormer gives q, k and v different sources; elsewhere the three are one.
struct AttentionInput {
  at::Tensor q_source;           // [B, T, d]
  at::Tensor k_source;           // [B, T, d]
  at::Tensor v_source;           // [B, T, d]; a selective mixer's gate reads it too
  at::Tensor first_values = {};  // [B, T, H_kv, hd]; needed where the layer has a mixer
  at::Tensor lambda1 = {};       // []; needed where the mixer is static
  const Sequence& sequence;
  std::int64_t layer = 0;
  Observer* observer = nullptr;
};

struct AttentionOutput {
  at::Tensor hidden;  // [B, T, d]
  at::Tensor values;  // [B, T, H_kv, hd], raw: after Wv, before any norm, rotation or mix
};

// Causal grouped-query attention with optional qk-norm, rotary positions and a value mixer:
//   q = u Wq, k = u Wk, v = u Wv;  v' = mixer(v, v1);  q, k = RoPE(RMSNorm(q)), RoPE(RMSNorm(k))
//   hidden = softmax(q k^T / sqrt(hd) + mask) v' Wo
class AttentionImpl : public torch::nn::Module {
 public:
  // `mixer` is registered as value_residual_mixing; null: none.
  AttentionImpl(const AttentionOptions& options, std::shared_ptr<ValueMixer> mixer, const at::TensorOptions& tensors);
  AttentionOutput forward(const AttentionInput& input);

  Linear q_proj{nullptr};                    // [H hd, d]
  Linear k_proj{nullptr};                    // [H_kv hd, d]
  Linear v_proj{nullptr};                    // [H_kv hd, d]
  Linear o_proj{nullptr};                    // [d, H hd]
  RMSNorm q_norm{nullptr}, k_norm{nullptr};  // [hd], one weight for all heads; empty without qk_norm
  std::shared_ptr<ValueMixer> value_residual_mixing;

 private:
  at::Tensor split_heads(const at::Tensor& x) const;
  at::Tensor mix_values(const at::Tensor& values, const AttentionInput& input);
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) const;

  std::int64_t head_dim_;
  bool grouped_;
};
TORCH_MODULE(Attention);

}  // namespace satformer::nn
