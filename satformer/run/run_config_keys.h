#pragma once
// The rows of a run's configuration (config/config_key.h): parsing, --help-config and docs/configuration.md follow from
// them.
#include <vector>

#include "satformer/config/config_key.h"
#include "satformer/run/run_config.h"

namespace satformer::train {

// The keys that are members of a RunConfig. Not among them: those that name the architecture, and those of the model
// (models/model_keys.h), which follow "model.config_overrides.".
const std::vector<ConfigKey<RunConfig>>& run_config_rows();

}  // namespace satformer::train
