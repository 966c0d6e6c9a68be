#pragma once
// Writing a checkpoint (checkpoint/layout.h).
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "satformer/checkpoint/trainer_state.h"
#include "satformer/models/language_model.h"
#include "satformer/optim/adamw.h"

namespace satformer::checkpoint {

struct Contents {
  const models::LanguageModel& model;
  const optim::AdamW& optimizer;
  const TrainerState& state;
  const std::string& tokenizer;  // contents of tokenizer.model; empty: none
  // The optimiser's whole state where it lies divided over ranks (train/rank_state.h); null: optimizer.state().
  const std::map<std::string, at::Tensor>* optimizer_state = nullptr;
};

// Writes RUN/checkpoints/step_NNNNNNNN and returns its path. Error, and nothing written, when a parameter is not
// finite. With keep_last, older checkpoints are removed once the new one is whole.
std::filesystem::path save(const std::filesystem::path& run, const Contents& contents,
                           std::optional<std::int64_t> keep_last = {});

}  // namespace satformer::checkpoint
