#pragma once
// trainer.json of a checkpoint: what a run needs to continue besides parameters and the optimiser's state. Without
// torch.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace satformer::checkpoint {

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

// The file's text; `version` is that of the program that writes it.
std::string format_trainer_state(const TrainerState& state, const std::string& version);

// Error names `source`, the key, what was expected and what it got.
TrainerState parse_trainer_state(const std::string& text, const std::string& source);

// That of a checkpoint, without a look at the manifest.
TrainerState load_trainer_state(const std::filesystem::path& checkpoint);

}  // namespace satformer::checkpoint
