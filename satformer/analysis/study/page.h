#pragma once
// A report as one page (page/report.html) that works without a network.
#include <string>
#include <vector>

#include "satformer/analysis/output/plot.h"
#include "satformer/analysis/study/report.h"

namespace satformer::analysis {

// `svgs` are the plots' pictures, in their order (fewer or none: those plots are left out).
std::string report_html(const GatesReport& report, const std::vector<Plot>& plots,
                        const std::vector<std::string>& svgs);

}  // namespace satformer::analysis
