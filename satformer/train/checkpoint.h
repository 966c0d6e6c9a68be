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
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "satformer/models/language_model.h"
#include "satformer/optim/adamw.h"

namespace satformer::train {

// What a run needs to go on besides parameters and the optimiser's state.
struct TrainerState {
  std::int64_t step = 0;           // steps done, skipped ones included
  std::int64_t samples = 0;        // global index of the next sample
  std::int64_t tokens = 0;         // target tokens seen
  std::int64_t skipped_steps = 0;  // in all, and the last ones in a row
  std::int64_t skipped_in_a_row = 0;
  std::optional<double> train_loss;  // of the last step that was not skipped
  std::optional<double> val_loss;    // of the last validation,
  std::int64_t val_step = 0;         // which was after this step
  std::int64_t val_tokens = 0;
  std::optional<double> best_val_loss;
  std::string data_fingerprint;  // of the training data
  nlohmann::json config;         // RunConfig::values
};

struct CheckpointContents {
  const models::LanguageModel& model;
  const optim::AdamW& optimizer;
  const TrainerState& state;
  const std::string& tokenizer;  // contents of tokenizer.model; empty: none
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
