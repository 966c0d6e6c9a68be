#pragma once
// What a checkpoint says of the data that it was trained with.
#include <filesystem>
#include <string>

#include "satformer/eval/split_options.h"
#include "satformer/models/model_config.h"
#include "satformer/run/run_config.h"

namespace satformer::eval {

// The data section that the checkpoint was trained with, as `split` changes it; for a checkpoint without a trainer's
// state, the defaults.
train::DataConfig data_config(const std::filesystem::path& checkpoint, const models::ModelConfig& model,
                              const SplitOptions& split = {});

// The file names' beginning of the split "val" or "train".
const std::string& prefix_of(const train::DataConfig& data, const std::string& split);

}  // namespace satformer::eval
