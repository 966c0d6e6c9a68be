#pragma once
// The plots of a report: of the gates or the access, and of how they changed over the run's checkpoints.
#include <vector>

#include "satformer/analysis/output/plot.h"
#include "satformer/analysis/study/report.h"

namespace satformer::analysis {

// What the report has numbers for decides which.
std::vector<Plot> report_plots(const GatesReport& report);

}  // namespace satformer::analysis
