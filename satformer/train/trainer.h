#pragma once
// Training: one object that owns model, optimiser and data position, and goes on step by step.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "satformer/checkpoint/checkpoint.h"
#include "satformer/distributed/gradient_reducer.h"
#include "satformer/distributed/world.h"
#include "satformer/run/run_config.h"
#include "satformer/train/display.h"
#include "satformer/train/gradients.h"
#include "satformer/train/metrics.h"
#include "satformer/train/resume.h"

namespace satformer::train {

struct Validation {
  double loss = 0.0;  // mean nats a target token
  std::int64_t tokens = 0;
};

struct TrainerOptions {
  std::filesystem::path output;  // the run's folder: metrics.jsonl, tensorboard/, checkpoints/
  ResumeRequest resume;
  c10::Device device = c10::kCPU;
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::function<Validation(models::LanguageModel&)> validate;  // empty: no validation
  std::string validation_fingerprint;                          // of its data, which ranks must have alike
  std::function<bool()> stop_requested;                        // asked in every step; empty: never
  // The ranks that train together: every rank makes the same calls of the Trainer, and the functions above are called
  // on all of them. One rank that is asked to stop stops all.
  std::shared_ptr<distributed::World> world = std::make_shared<distributed::World>();
};

struct TrainingResult {
  TrainerState state;
  std::int64_t parameters = 0;
  double tokens_per_second = 0.0;  // of all ranks, in this process's steps; validation and checkpoints not counted
  std::filesystem::path checkpoint;
  bool stopped = false;  // by stop_requested, before max_steps
};

class Trainer {
 public:
  // Opens the data, makes the model and, when resuming, puts the checkpoint in place. Error before anything is written
  // when the data, the output folder or the checkpoint do not fit.
  Trainer(RunConfig config, TrainerOptions options);

  // Trains to max_steps (or a stop), with metrics, validations and checkpoints.
  TrainingResult run();

  // One step and nothing else: no metrics, validation or checkpoint. A loss or gradient that is not finite leaves
  // parameters and optimiser as they were; the data position moves on.
  StepMetrics step();

  models::LanguageModel& model() { return *model_; }
  const optim::AdamW& optimizer() const { return *optimizer_; }
  const TrainerState& state() const { return state_; }

 private:
  // What rank 0 alone writes and shows.
  struct Outputs {
    std::optional<MetricsWriter> writer;
    std::optional<Display> display;

    template <typename Metrics>
    void add(const Metrics& metrics);
  };

  std::optional<std::filesystem::path> agreed_checkpoint();
  void open_data();
  void make_model_and_optimizer();
  void restore(const std::filesystem::path& checkpoint);
  void start_together(const std::string& checkpoint_checksum);
  void describe_run() const;
  void open_outputs(Outputs& outputs);
  void sum_over_ranks(LossTotal& total);
  bool update(const LossTotal& total, StepMetrics& metrics);
  void check_skipped() const;
  void check_parameters();
  void validate(Outputs& outputs);
  void save(Outputs& outputs);
  bool due(std::int64_t interval) const;
  bool stop_wanted() const;

  RunConfig config_;
  TrainerOptions options_;
  distributed::World& world_;  // of options_
  std::optional<TrainingData> data_;
  std::shared_ptr<models::LanguageModel> model_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<ForwardBackward> forward_backward_;
  std::optional<distributed::GradientReducer> reducer_;
  TrainerState state_;
  std::string tokenizer_;             // tokenizer.model of the data, read once; empty: none
  std::filesystem::path checkpoint_;  // the one that holds state_.step; else empty
  std::int64_t tokens_here_ = 0;      // of this process
  double step_seconds_ = 0.0;
  bool stop_agreed_ = false;  // by the ranks, in the last step
};

}  // namespace satformer::train
