#pragma once
// The architecture that the tests add, to prove what docs/adding_an_architecture.md says.
#include "satformer/models/satformer/model.h"

namespace satformer::models {

// A SATFormer whose embedding has a learned scale: x = s E[ids].
class Toy : public SATFormer {
 public:
  Toy(const ModelConfig& config, const c10::TensorOptions& tensors);
  at::Tensor hidden_states(const ModelInput& input, nn::Observer* observer = nullptr) override;

 private:
  at::Tensor embedding_scale_;  // model.embedding_scale [], 1 at the start
};

}  // namespace satformer::models
