#pragma once
// What a checkpoint says of the data that it was trained with.
#include <filesystem>

#include "satformer/models/model_config.h"
#include "satformer/run/run_config.h"

namespace satformer::apps {

// The data section that the checkpoint was trained with; for a checkpoint without a trainer's state, the defaults.
train::DataConfig data_config(const std::filesystem::path& checkpoint, const models::ModelConfig& model);

}  // namespace satformer::apps
