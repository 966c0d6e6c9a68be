#include "satformer/models/transformer.h"

namespace satformer::models {

Transformer::Transformer(const ModelConfig& config, const c10::TensorOptions& tensors)
    : ResidualDecoder(config, tensors, [](std::int64_t) { return nullptr; }) {}

}  // namespace satformer::models
