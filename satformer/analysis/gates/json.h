#pragma once
// A summary of gates as JSON: the key "gates" of docs/gates.md. What the summary lacks has no key; "categories" is null
// without a classifier.
#include <nlohmann/json.hpp>

#include "satformer/analysis/gates/summary.h"

namespace satformer::analysis {

nlohmann::json to_json(const GateSummary& gates);

}  // namespace satformer::analysis
