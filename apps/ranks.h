#pragma once
// A command as one of several ranks: how it joins the others, and how it ends when one of them fails.
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>

#include "satformer/distributed/world.h"

namespace satformer::apps {

struct RankSettings {
  std::string device;  // "auto", "cpu" or "cuda": each rank takes the GPU of its local number
  double timeout_seconds = 0.0;
};

// Joins, and runs `work`. When it throws, or when another rank fails meanwhile, the process ends here with one line
// `satformer: error: rank R: MESSAGE` and exit code 1: the process groups could not be taken down.
void run_as_rank(const distributed::RankInfo& info, const RankSettings& settings,
                 const std::function<void(c10::Device, const std::shared_ptr<distributed::World>&)>& work);

}  // namespace satformer::apps
