#pragma once
// A summary of access as JSON: the key "access" of docs/gates.md.
#include <nlohmann/json.hpp>

#include "satformer/analysis/access/summary.h"

namespace satformer::analysis {

nlohmann::json to_json(const AccessSummary& access);

}  // namespace satformer::analysis
