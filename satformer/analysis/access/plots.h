#pragma once
// The plots of a summary of access.
#include <vector>

#include "satformer/analysis/access/summary.h"
#include "satformer/analysis/output/plot.h"

namespace satformer::analysis {

// What the summary has numbers for decides which.
void add_access_plots(const AccessSummary& access, std::vector<Plot>& plots);

}  // namespace satformer::analysis
