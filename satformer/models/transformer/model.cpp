#include "satformer/models/transformer/model.h"

#include "satformer/models/architecture_list.h"

namespace satformer::models {

Transformer::Transformer(const ModelConfig& config, const c10::TensorOptions& tensors)
    : ResidualDecoder(config, tensors, [](std::int64_t) { return nullptr; }) {}

std::shared_ptr<LanguageModel> make_transformer(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<Transformer>(config, tensors);
}

}  // namespace satformer::models
