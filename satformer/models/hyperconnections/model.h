#pragma once
// HyperConnections.
#include "satformer/models/decoder.h"
#include "satformer/nn/decoder_block.h"
#include "satformer/nn/hyper_connection.h"

namespace satformer::models {

class HyperConnectionBlockImpl : public torch::nn::Module {
 public:
  HyperConnectionBlockImpl(const nn::DecoderBlockOptions& options, const nn::HyperConnectionOptions& attention,
                           const nn::HyperConnectionOptions& mlp, const at::TensorOptions& tensors);
  // residual_streams [B, T, n, d] -> the same
  at::Tensor forward(const at::Tensor& residual_streams, const nn::LayerContext& context);

  nn::RMSNorm attn_norm{nullptr};
  nn::Attention attn{nullptr};
  nn::HyperConnection attn_hc{nullptr};
  nn::RMSNorm mlp_norm{nullptr};
  nn::MLP mlp{nullptr};
  nn::HyperConnection mlp_hc{nullptr};
};
TORCH_MODULE(HyperConnectionBlock);

// n = expansion_rate residual streams that start as n copies of the embedding. Each attention and each MLP reads their
// mixture M_0, and its output is written back to all (nn::HyperConnection); the final norm reads their sum. The
// initial weights of the output projections are divided by sqrt(n).
class HyperConnections : public Decoder {
 public:
  HyperConnections(const ModelConfig& config, const c10::TensorOptions& tensors);
  at::Tensor hidden_states(const ModelInput& input, nn::Observer* observer = nullptr) override;
  double initial_std(std::string_view name) const override;

 private:
  std::vector<HyperConnectionBlock> blocks_;
};

}  // namespace satformer::models
