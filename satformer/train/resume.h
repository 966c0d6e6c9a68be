#pragma once
// Which checkpoint a run continues from, and whether it may.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "satformer/checkpoint/trainer_state.h"
#include "satformer/run/run_config.h"

namespace satformer::train {

struct ResumeRequest {
  bool newest = false;           // --resume: the output folder's newest checkpoint, or a fresh start
  std::filesystem::path from{};  // --resume-from: that one; empty: not given

  bool given() const { return newest || !from.empty(); }
};

// The checkpoint to continue, or nothing for a fresh start. Error when `output` already holds a run that the request
// does not continue.
std::optional<std::filesystem::path> choose_checkpoint(const std::filesystem::path& output,
                                                       const ResumeRequest& request);

// Model and data order must be the checkpoint's: Error names the key, both values and what to do.
void check_resume(const RunConfig& config, const std::string& data_fingerprint, const checkpoint::TrainerState& state,
                  const std::filesystem::path& checkpoint);

// A note lists the keys that have changed since the checkpoint.
void note_changes(const RunConfig& config, const checkpoint::TrainerState& state);

}  // namespace satformer::train
