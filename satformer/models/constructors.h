#pragma once
// From a configuration to the model of its architecture.
#include <memory>

#include "satformer/models/model_config.h"

namespace c10 {
struct TensorOptions;
}

namespace satformer::models {

class LanguageModel;

// The model with uninitialised linear and embedding weights, its parameters as `tensors` says. Error names an
// architecture that is not known.
std::shared_ptr<LanguageModel> construct_model(const ModelConfig& config, const c10::TensorOptions& tensors);

}  // namespace satformer::models
