#pragma once
// ResFormer.
#include <optional>

#include "satformer/models/decoder.h"
#include "satformer/nn/value_mixer.h"

namespace satformer::models {

// Static value residual. With v1 the raw values of layer 0, in every layer i >= 1 that mixes:
//   v' = lambda1_i v1 + lambda2_i v
//   learnable: lambda1 = lambda_scale softmax(lambda_logits) over all layers 1 .. L-1; lambda2 is the layer's own
//   identity: 0.5, 0.5;  constant: 2, 1;  sparse: 5, 1 in the last third of the layers; these have no parameters
// Source: Zhou et al. 2024, "Value Residual Learning"; the learnable form is that of the SATFormer authors' code.
class ResFormer : public ResidualDecoder {
 public:
  ResFormer(const ModelConfig& config, const c10::TensorOptions& tensors);

 private:
  std::vector<at::Tensor> layer_lambda1(nn::Observer* observer) const override;

  at::Tensor lambda_scale_;   // model.lambda_manager.lambda_scale [], L at the start; undefined: no parameters
  at::Tensor lambda_logits_;  // model.lambda_manager.lambda_logits [L-1], 0 at the start
};

// lambda1 and lambda2 of the variants that have no parameters; nothing for the learnable one.
std::optional<nn::FixedMixOptions> fixed_mix(const ModelConfig& config);

}  // namespace satformer::models
