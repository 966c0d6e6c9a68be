#pragma once
// Training: one object that owns model, optimiser and data position, and goes on step by step.
//
//   Trainer trainer(load_run_config("config.json"), {.output = "runs/small"});
//   TrainingResult result = trainer.run();
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "satformer/checkpoint/trainer_state.h"
#include "satformer/distributed/world.h"
#include "satformer/run/run_config.h"
#include "satformer/train/gradients.h"
#include "satformer/train/resume.h"
#include "satformer/train/run_outputs.h"
#include "satformer/train/training_result.h"
#include "satformer/train/training_step.h"
#include "satformer/train/validator.h"

namespace satformer::train {

struct TrainerOptions {
  std::filesystem::path output;  // the run's folder (checkpoint/layout.h)
  ResumeRequest resume = {};
  c10::Device device = c10::kCPU;
  c10::ScalarType dtype = c10::ScalarType::Float;
  bool validates = true;                      // false: for measurements, which have no validation split
  std::function<bool()> stop_requested = {};  // asked in every step, on every rank; empty: never
  // The ranks that train together: every rank makes the same calls of the Trainer. One that is asked to stop stops all.
  std::shared_ptr<distributed::World> world = std::make_shared<distributed::World>();
};

class Trainer {
 public:
  // Opens the data, makes the model and, when resuming, restores the checkpoint. Error before anything is written when
  // the data, the output folder or the checkpoint do not fit.
  Trainer(RunConfig config, TrainerOptions options);

  // Trains to max_steps (or a stop), with metrics, validations and checkpoints.
  TrainingResult run();

  // One step and nothing else: no metrics, validation or checkpoint. A loss or gradient that is not finite leaves
  // parameters and optimiser as they were; the data position moves on.
  StepMetrics step();

  models::LanguageModel& model() { return *model_; }
  const optim::AdamW& optimizer() const { return *optimizer_; }
  const checkpoint::TrainerState& state() const { return state_; }

 private:
  std::optional<std::filesystem::path> agreed_checkpoint();
  void open_data();
  void make_model_and_optimizer();
  void restore(const std::filesystem::path& checkpoint);
  void start_together(const std::string& checkpoint_checksum);
  void describe_run() const;
  void count_step(const StepResult& result);
  void require_progress() const;
  void compare_ranks();
  void validate(RunOutputs* outputs);
  void save(RunOutputs* outputs);
  bool due(std::int64_t interval) const;
  bool stop_requested() const;

  RunConfig config_;
  TrainerOptions options_;
  distributed::World& world_;  // of options_
  std::optional<TrainingData> data_;
  std::optional<Validator> validator_;
  std::shared_ptr<models::LanguageModel> model_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<TrainingStep> step_;
  checkpoint::TrainerState state_;
  std::string tokenizer_;             // tokenizer.model of the data, read once; empty: none
  std::filesystem::path checkpoint_;  // the one that holds state_.step; else empty
  std::int64_t tokens_here_ = 0;      // of this process
  double step_seconds_ = 0.0;
  bool stop_agreed_ = false;  // by several ranks, in the last step
};

}  // namespace satformer::train
