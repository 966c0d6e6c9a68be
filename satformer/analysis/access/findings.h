#pragma once
// What a summary of access says, in sentences.
#include <string>
#include <vector>

#include "satformer/analysis/access/summary.h"

namespace satformer::analysis {

std::vector<std::string> access_findings(const AccessSummary& access);

}  // namespace satformer::analysis
