#include "satformer/train/describe_run.h"

#include <fmt/ranges.h>

#include "satformer/core/progress.h"

namespace satformer::train {

void note_run(const RunConfig& config, const RunFacts& facts) {
  const TrainingConfig& training = config.training;
  if (!config.ignored.empty()) {
    note(fmt::format("known keys without meaning here: {}", fmt::join(config.ignored, ", ")));
  }
  note(fmt::format("model {}: {} parameters, {} on {}", config.model.architecture, facts.parameters,
                   facts.dtype == c10::ScalarType::Float ? "float32" : "bfloat16", facts.device.str()));
  for (const optim::ParameterGroup& group : facts.groups) note(optim::describe(group));
  if (facts.ranks > 1) {
    note(fmt::format("{} ranks, {} buckets of gradients{}", facts.ranks, facts.buckets,
                     config.distributed.shard_optimizer ? ", the optimiser's moments divided over the ranks" : ""));
  }
  note(fmt::format("{} steps of {} sequences of {} tokens; {} windows in an epoch", training.schedule.max_steps,
                   training.sequences_per_step(), config.data.seq_length, facts.windows_per_epoch));
}

}  // namespace satformer::train
