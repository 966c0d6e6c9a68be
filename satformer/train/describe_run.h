#pragma once
// What a run tells at its start.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "satformer/optim/parameter_groups.h"
#include "satformer/run/run_config.h"

namespace satformer::train {

struct RunFacts {
  std::int64_t parameters = 0;
  c10::Device device;
  c10::ScalarType dtype;
  const std::vector<optim::ParameterGroup>& groups;
  int ranks = 1;
  std::size_t buckets = 0;  // of gradients
  std::int64_t windows_per_epoch = 0;
};

// Notes: the keys that are ignored, the model, the parameter groups, the ranks, the length.
void note_run(const RunConfig& config, const RunFacts& facts);

}  // namespace satformer::train
