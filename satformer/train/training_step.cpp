#include "satformer/train/training_step.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <vector>

#include "satformer/checkpoint/parameters.h"
#include "satformer/optim/clip.h"
#include "satformer/train/rank_state.h"

namespace satformer::train {
namespace {

std::vector<at::Tensor> parameter_tensors(const models::LanguageModel& model) {
  std::vector<at::Tensor> tensors;
  for (const optim::NamedParameter& parameter : checkpoint::named_parameters(model)) {
    tensors.push_back(parameter.tensor);
  }
  return tensors;
}

distributed::ReducerOptions reducer_options(const RunConfig& config) {
  return {.bucket_bytes = static_cast<std::int64_t>(config.distributed.bucket_mb * (1 << 20)),
          .overlap = !config.training.cuda_graph};
}

}  // namespace

TrainingStep::TrainingStep(const RunConfig& config, models::LanguageModel& model, optim::AdamW& optimizer,
                           c10::Device device, c10::ScalarType dtype, distributed::World& world)
    : config_(config),
      optimizer_(optimizer),
      world_(world),
      forward_backward_(model, device, dtype, config.training.cuda_graph),
      reducer_(world, parameter_tensors(model), reducer_options(config)) {}

StepResult TrainingStep::run(const TrainingData& data, const StepRequest& request) {
  StepResult result = sum_gradients(data, request);
  const auto targets = static_cast<double>(result.loss.num_targets);
  result.grad_norm = optim::global_norm(optimizer_.gradients()) / targets;
  result.finite = std::isfinite(result.loss.mean()) && std::isfinite(result.grad_norm);
  if (result.finite) apply(result, request.learning_rate);
  optimizer_.zero_grad(forward_backward_.keeps_gradients());
  return result;
}

// Of the summed loss, over all samples of all ranks.
StepResult TrainingStep::sum_gradients(const TrainingData& data, const StepRequest& request) {
  const Range own = world_.partition(request.samples.count);
  const SampleRange samples{request.samples.first + own.begin, own.size()};
  const auto passes = [&](const std::function<void()>& before_last) -> std::vector<double> {
    const eval::LossTotal loss =
        accumulate_gradients(forward_backward_, data, samples, config_.training.micro_batch_size, before_last);
    return {loss.loss_sum, static_cast<double>(loss.num_targets), request.stop ? 1.0 : 0.0};
  };
  const std::vector<double> sums =
      reducer_.reduce(passes, fmt::format("the all-reduce of the loss of step {}", request.step));
  StepResult result;
  result.loss = {sums[0], static_cast<std::int64_t>(sums[1])};
  result.stop = sums[2] > 0;
  return result;
}

void TrainingStep::apply(const StepResult& result, double learning_rate) {
  const double clip = optim::clip_factor(result.grad_norm, config_.training.grad_clip);
  optimizer_.step(learning_rate, clip / static_cast<double>(result.loss.num_targets));
  if (config_.distributed.shard_optimizer && world_.size() > 1) {
    gather_parameters(world_, optimizer_, config_.distributed);
  }
}

}  // namespace satformer::train
