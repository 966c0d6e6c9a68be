#pragma once
// What is told of the other architectures' access to early representations, as JSON (docs/gates.md).
#include <nlohmann/json.hpp>

#include "satformer/analysis/depth_access.h"

namespace satformer::analysis {

// null when there is none.
nlohmann::json access_json(const DepthAccess& access);

}  // namespace satformer::analysis
