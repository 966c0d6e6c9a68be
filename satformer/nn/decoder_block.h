#pragma once
#include <cstdint>
#include <memory>

#include "satformer/nn/attention.h"
#include "satformer/nn/mlp.h"

namespace satformer::nn {

struct DecoderBlockOptions {
  AttentionOptions attention;
  std::int64_t intermediate_size = 0;
  double norm_eps = 1e-6;
};

struct DecoderBlockInput {
  ResidualStream hidden;         // x [B, T, d]
  at::Tensor first_values = {};  // v1 [B, T, H_kv, hd]; needed where the layer mixes values
  at::Tensor lambda1 = {};       // []; needed where the mixer is static
  const AttentionContext& sequence;
  std::int64_t layer = 0;
  bool returns_values = false;
  Observer* observer = nullptr;
  Intervention* intervention = nullptr;  // without gradients alone
};

struct DecoderBlockOutput {
  ResidualStream hidden;  // [B, T, d]
  at::Tensor values;      // with returns_values: [B, T, H_kv, hd], this layer's raw values
};

// The pre-norm block:
//   x = x + Attention(RMSNorm(x))
//   x = x + MLP(RMSNorm(x))
class DecoderBlockImpl : public torch::nn::Module {
 public:
  DecoderBlockImpl(const DecoderBlockOptions& options, std::shared_ptr<ValueMixer> mixer,
                   const at::TensorOptions& tensors);
  DecoderBlockOutput forward(const DecoderBlockInput& input);

  RMSNorm attn_norm{nullptr};
  Attention attn{nullptr};
  RMSNorm mlp_norm{nullptr};
  MLP mlp{nullptr};
};
TORCH_MODULE(DecoderBlock);

}  // namespace satformer::nn
