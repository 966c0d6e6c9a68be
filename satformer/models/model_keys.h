#pragma once
#include <string>

#include "satformer/models/architectures.h"

namespace satformer::models {

// Whether the architecture reads this key: the trunk's keys always, those of value residuals where it lists them.
bool model_key_has_meaning(const std::string& key, const Architecture& architecture);

}  // namespace satformer::models
