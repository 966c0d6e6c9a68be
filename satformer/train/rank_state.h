#pragma once
// What ranks must have alike, and what they hold in parts.
#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "satformer/checkpoint/trainer_state.h"
#include "satformer/distributed/world.h"
#include "satformer/optim/adamw.h"
#include "satformer/run/run_config.h"

namespace satformer::train {

struct StartFacts {
  const RunConfig& config;
  const checkpoint::TrainerState& state;
  const std::vector<optim::NamedParameter>& parameters;
  const std::string& validation_fingerprint;  // empty: no validation
  const std::string& checkpoint_checksum;     // of its manifest; empty: none
};

// Error names the rank that differs in the library's version, the configuration (but for the keys that name this
// machine's folders, device and threads), the training and validation data, the parameters' names and shapes, the
// position in the run or the contents of the checkpoint.
void require_same_start(distributed::World& world, const StartFacts& facts);

// Overwrites every parameter with that of rank 0.
void broadcast_parameters(distributed::World& world, const optim::AdamW& optimizer, const DistributedConfig& config);

// After a step of an optimiser that owns world.partition(num_elements()): gives every rank the others' parts of the
// parameters.
void gather_parameters(distributed::World& world, const optim::AdamW& optimizer, const DistributedConfig& config);

// The whole state of such an optimiser, as AdamW::state() would give it: on rank 0, on the CPU. Empty on other ranks,
// which take part.
std::map<std::string, at::Tensor> gather_optimizer_state(distributed::World& world, const optim::AdamW& optimizer,
                                                         const DistributedConfig& config);

}  // namespace satformer::train
