#pragma once
// The Transformer: what the other architectures are compared with.
#include "satformer/models/decoder.h"

namespace satformer::models {

// The trunk and nothing else: docs/architectures.md.
class Transformer : public ResidualDecoder {
 public:
  Transformer(const ModelConfig& config, const c10::TensorOptions& tensors);
};

}  // namespace satformer::models
