#pragma once
// What a training has come to.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "satformer/checkpoint/trainer_state.h"

namespace satformer::train {

struct TrainingResult {
  checkpoint::TrainerState state;
  std::int64_t parameters = 0;
  double tokens_per_second = 0.0;  // of all ranks, in this process's steps; validation and checkpoints not counted
  std::filesystem::path checkpoint;
  bool stopped = false;  // by stop_requested, before max_steps
};

// {"steps", "tokens", "train_loss", "val_loss", "val_perplexity", "tokens_per_second", "parameters", "checkpoint",
// "skipped_steps", "stopped"}; a loss that there is not is null.
nlohmann::json to_json(const TrainingResult& result);

}  // namespace satformer::train
