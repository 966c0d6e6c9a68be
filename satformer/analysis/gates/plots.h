#pragma once
// The plots of a summary of gates.
#include <vector>

#include "satformer/analysis/gates/summary.h"
#include "satformer/analysis/output/plot.h"

namespace satformer::analysis {

// What the summary has numbers for decides which. `initial` is of the same model before training; null: not known.
void add_gate_plots(const GateSummary& gates, const GateSummary* initial, std::vector<Plot>& plots);

}  // namespace satformer::analysis
