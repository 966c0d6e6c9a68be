#pragma once
// The GPU that belongs to a rank.
#include <c10/core/Device.h>

#include <string>

#include "satformer/distributed/environment.h"

namespace satformer::distributed {

// The device of a rank where the configuration says `name` ("auto", "cpu" or "cuda"): the GPU of its number on this
// machine, which becomes this process's current one. Error when there are too few, or when `name` names one.
c10::Device device_of_rank(const std::string& name, const RankInfo& info);

}  // namespace satformer::distributed
