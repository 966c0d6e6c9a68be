#pragma once
// A model's parameters by the names that checkpoints give them.
#include <vector>

#include "satformer/models/language_model.h"
#include "satformer/optim/parameter_groups.h"
#include "satformer/runtime/safetensors.h"

namespace satformer::checkpoint {

// In the model's order; a tied head once.
std::vector<optim::NamedParameter> named_parameters(const models::LanguageModel& model);

// The same, sorted by name.
TensorMap parameter_map(const models::LanguageModel& model);

}  // namespace satformer::checkpoint
