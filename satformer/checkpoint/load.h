#pragma once
// Reading a checkpoint (checkpoint/layout.h): the manifest is checked first, then every name, shape and dtype. An Error
// names the file and what is wrong.
#include <filesystem>
#include <functional>
#include <memory>

#include "satformer/checkpoint/trainer_state.h"
#include "satformer/models/language_model.h"
#include "satformer/optim/adamw.h"

namespace satformer::checkpoint {

// The model of a checkpoint (or of a run's newest one), on the CPU, in evaluation mode.
std::shared_ptr<models::LanguageModel> load_model(const std::filesystem::path& path);

// Checks the whole checkpoint, shows its state to `accept` (which throws when it does not fit), and only then restores
// the parameters and the optimiser's state. Returns the trainer's state.
TrainerState restore(const std::filesystem::path& checkpoint, models::LanguageModel& model, optim::AdamW& optimizer,
                     const std::function<void(const TrainerState&)>& accept);

}  // namespace satformer::checkpoint
