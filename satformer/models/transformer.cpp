#include "satformer/models/transformer.h"

namespace satformer::models {

Transformer::Transformer(const ModelConfig& config, const c10::TensorOptions& tensors)
    : BlockDecoder(config, tensors, [](std::int64_t) { return nullptr; }) {}

at::Tensor Transformer::hidden_states(const ModelInput& input, nn::Observer* observer) {
  nn::Stream x{embed(input)};
  const nn::Sequence sequence = make_sequence(x.sum, input);
  for (std::int64_t i = 0; i < num_layers(); ++i) {
    x = run_layer({.hidden = x, .sequence = sequence, .layer = i, .observer = observer}).hidden;
  }
  return final_norm(x, observer);
}

}  // namespace satformer::models
