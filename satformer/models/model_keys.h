#pragma once
// The keys of a flat model configuration: config.json, or the object model.config_overrides.
#include <string>
#include <vector>

#include "satformer/config/config.h"
#include "satformer/models/model_config.h"

namespace satformer::models {

// The rows of what every architecture has. Those of one architecture alone are in its facts (models/architectures.h).
const std::vector<ModelKey>& trunk_keys();

// Rows that ResFormer and SATFormer share.
std::vector<ModelKey> value_residual_keys();

// The known keys of any architecture.
const KeyList& model_keys();

// The same keys for one architecture (our name): the keys of another one are known, but without meaning.
KeyList model_keys(const std::string& architecture);

}  // namespace satformer::models
