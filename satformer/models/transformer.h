#pragma once
#include "satformer/models/decoder.h"

namespace satformer::models {

// The trunk and nothing else: docs/architectures.md.
class Transformer : public BlockDecoder {
 public:
  Transformer(const ModelConfig& config, const c10::TensorOptions& tensors);
  at::Tensor hidden_states(const ModelInput& input, nn::Observer* observer = nullptr) override;
};

}  // namespace satformer::models
