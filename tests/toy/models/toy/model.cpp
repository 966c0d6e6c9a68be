#include "tests/toy/models/toy/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include "satformer/models/architecture_list.h"

namespace satformer::models {

Toy::Toy(const ModelConfig& config, const c10::TensorOptions& tensors) : SATFormer(config, tensors) {
  embedding_scale_ = trunk().register_parameter("embedding_scale", at::ones({}, tensors));
}

at::Tensor Toy::hidden_states(const ModelInput& input, nn::Observer* observer) {
  DecoderPass pass = begin(input, observer);
  pass.hidden.sum = embedding_scale_ * pass.hidden.sum;
  while (pass.layer < num_layers()) advance(pass, observer);
  return finish(pass, observer);
}

std::shared_ptr<LanguageModel> make_toy(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<Toy>(config, tensors);
}

}  // namespace satformer::models
