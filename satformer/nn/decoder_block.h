#pragma once
// The pre-norm decoder block that most architectures are made of.
#include <array>
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
  ResidualStream hidden;        // x [B, T, d]
  ValueResidual residual = {};  // needed where the layer mixes values
};

struct DecoderBlockOutput {
  ResidualStream hidden;  // [B, T, d]
  at::Tensor values;      // with returns_values: [B, T, H_kv, hd], this layer's raw values
};

// For fused::recompute_layer.
inline std::array<at::Tensor*, 4> tensors_of(DecoderBlockInput& x) {
  return {&x.hidden.sum, &x.hidden.pending, &x.residual.first_values, &x.residual.lambda1};
}
inline std::array<at::Tensor*, 3> tensors_of(DecoderBlockOutput& x) {
  return {&x.hidden.sum, &x.hidden.pending, &x.values};
}

// The pre-norm block:
//   x = x + Attention(RMSNorm(x))
//   x = x + MLP(RMSNorm(x))
class DecoderBlockImpl : public torch::nn::Module {
 public:
  DecoderBlockImpl(const DecoderBlockOptions& options, std::shared_ptr<ValueMixer> mixer,
                   const at::TensorOptions& tensors);
  DecoderBlockOutput forward(const DecoderBlockInput& input, const LayerContext& context);

  RMSNorm attn_norm{nullptr};
  Attention attn{nullptr};
  RMSNorm mlp_norm{nullptr};
  MLP mlp{nullptr};
};
TORCH_MODULE(DecoderBlock);

}  // namespace satformer::nn
