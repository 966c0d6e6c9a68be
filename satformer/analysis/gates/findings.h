#pragma once
// What a summary of gates says, in sentences.
#include <string>
#include <vector>

#include "satformer/analysis/gates/summary.h"

namespace satformer::analysis {

// How sparse, where, for which tokens. `initial` is of the same model before training; null: not known.
std::vector<std::string> gate_findings(const GateSummary& gates, const GateSummary* initial);

}  // namespace satformer::analysis
