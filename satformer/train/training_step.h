#pragma once
// One step: the gradient over micro-batches and ranks, clipping, AdamW.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "satformer/distributed/gradient_reducer.h"
#include "satformer/eval/loss_total.h"
#include "satformer/optim/adamw.h"
#include "satformer/run/run_config.h"
#include "satformer/train/forward_backward.h"
#include "satformer/train/gradients.h"

namespace satformer::train {

// What a rank brings to a step.
struct StepRequest {
  std::int64_t step = 0;  // its number, from 1 on: for messages
  SampleRange samples;    // of all ranks; each takes its part
  double learning_rate = 0.0;
  bool stop = false;  // this rank was asked to stop
};

// The same on all ranks.
struct StepResult {
  eval::LossTotal loss;
  double grad_norm = 0.0;  // of the mean loss's gradient, before clipping
  bool finite = true;      // else nothing was updated
  bool stop = false;       // any rank was asked to stop
};

class TrainingStep {
 public:
  // All of them must live as long as this object.
  TrainingStep(const RunConfig& config, models::LanguageModel& model, optim::AdamW& optimizer, c10::Device device,
               c10::ScalarType dtype, distributed::World& world);

  // A loss or gradient that is not finite leaves parameters and optimiser as they were.
  StepResult run(const TrainingData& data, const StepRequest& request);

  std::size_t num_buckets() const { return reducer_.num_buckets(); }

 private:
  StepResult sum_gradients(const TrainingData& data, const StepRequest& request);
  void apply(const StepResult& result, double learning_rate);

  const RunConfig& config_;
  optim::AdamW& optimizer_;
  distributed::World& world_;
  ForwardBackward forward_backward_;
  distributed::GradientReducer reducer_;
};

}  // namespace satformer::train
