#pragma once
// access.csv: a line for each KV head of a static mix, for each source of a reader. docs/gates.md lists its columns.
#include <string>

#include "satformer/analysis/access/summary.h"

namespace satformer::analysis {

std::string access_table(const AccessSummary& access);

}  // namespace satformer::analysis
