#pragma once
// MUDDFormer.
#include "satformer/models/decoder.h"
#include "satformer/nn/depth_aggregate.h"

namespace satformer::models {

// A block with an input of its own for queries, keys, values and residual, and the aggregation that makes the next
// block's inputs.
struct MUDDBlockOptions {
  nn::AttentionOptions attention;
  nn::DepthAggregateOptions aggregate;
  std::int64_t intermediate_size = 0;
  double norm_eps = 1e-6;
};

class MUDDBlockImpl : public torch::nn::Module {
 public:
  MUDDBlockImpl(const MUDDBlockOptions& options, const at::TensorOptions& tensors);
  // q, k, v, r [B, T, d] each -> X [B, T, d]
  at::Tensor forward(const nn::MuddInputs& inputs, const nn::LayerContext& context);

  nn::RMSNorm attn_norm_q{nullptr}, attn_norm_k{nullptr}, attn_norm_v{nullptr};
  nn::Attention attn{nullptr};
  nn::RMSNorm mlp_norm{nullptr};
  nn::MLP mlp{nullptr};
  nn::DepthAggregate da{nullptr};
};
TORCH_MODULE(MUDDBlock);

// Multiway dynamic dense connections (Xiao et al., arXiv 2502.12170). All four streams start as the embedding X_0;
//   h = Attention(RMS(Xq), RMS(Xk), RMS(Xv)) + Xr;  X = h + MLP(RMS(h))
// and after each block nn::DepthAggregate makes the four streams (after the last one: r alone) from all X so far.
class MUDDFormer : public Decoder {
 public:
  MUDDFormer(const ModelConfig& config, const c10::TensorOptions& tensors);
  at::Tensor hidden_states(const ModelInput& input, nn::Observer* observer = nullptr) override;
  double initial_std(std::string_view name) const override;

 private:
  std::vector<MUDDBlock> blocks_;
};

}  // namespace satformer::models
