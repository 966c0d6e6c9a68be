#pragma once
// Checkpoints: RUN/checkpoints/step_00000100/ with
//   model.safetensors      parameters, float32, by their names; a tied head is stored once
//   optimizer.safetensors  AdamW's state: exp_avg.NAME, exp_avg_sq.NAME, step.NAME
//   trainer.json           TrainerState
//   config.json            the model's configuration in the published layout
//   tokenizer.model        where the data folder has one
//   manifest.json          sizes and checksums of all of them
// A folder appears under its name only when it is whole. Loading checks the manifest first, then every name, shape and
// dtype; an Error names the file and what is wrong.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "satformer/checkpoint/trainer_state.h"
#include "satformer/models/language_model.h"
#include "satformer/optim/adamw.h"

namespace satformer::train {

struct CheckpointContents {
  const models::LanguageModel& model;
  const optim::AdamW& optimizer;
  const TrainerState& state;
  const std::string& tokenizer;  // contents of tokenizer.model; empty: none
  // The optimiser's whole state where it lies divided over ranks (train/rank_state.h); null: optimizer.state().
  const std::map<std::string, at::Tensor>* optimizer_state = nullptr;
};

// Writes RUN/checkpoints/step_NNNNNNNN and returns its path. Error, and nothing written, when a parameter is not
// finite. With keep_last, all but the newest so many are removed once the new one is whole.
std::filesystem::path save_checkpoint(const std::filesystem::path& run, const CheckpointContents& contents,
                                      std::optional<std::int64_t> keep_last = {});

// RUN/checkpoints/step_NNNNNNNN.
std::filesystem::path checkpoint_path(const std::filesystem::path& run, std::int64_t step);

// Removes what a killed process left half-written or half-removed in the run's folder: checkpoints, metrics.
void remove_stale_checkpoints(const std::filesystem::path& run);

// The step folders of a run, oldest first.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& run);

// `path` itself when it is a step folder, else its newest checkpoint when it is a run; Error when it is neither.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

// The model of a checkpoint (a step folder or a run), on the CPU, in evaluation mode.
std::shared_ptr<models::LanguageModel> load_model(const std::filesystem::path& path);

// trainer.json alone, without a look at the manifest.
TrainerState load_trainer_state(const std::filesystem::path& checkpoint);

// Checks the whole checkpoint, shows its state to `accept` (which throws when it does not fit), and only then puts
// parameters and optimiser state into place. Returns the state.
TrainerState load_checkpoint(const std::filesystem::path& checkpoint, models::LanguageModel& model,
                             optim::AdamW& optimizer, const std::function<void(const TrainerState&)>& accept);

// The model's parameters by their checkpoint names.
std::vector<optim::NamedParameter> named_parameters(const models::LanguageModel& model);

}  // namespace satformer::train
