#pragma once
// Mean gate and open share of each token class and group, and their contrast, with bootstrap intervals.
#include <cstdint>
#include <map>
#include <string>

#include "satformer/analysis/gates/collector.h"
#include "satformer/analysis/statistics/bootstrap.h"
#include "satformer/analysis/tokens/categories.h"

namespace satformer::analysis {

struct CategoryEstimate {
  Estimate mean, open_share;
};

// Of one head, or of several together (every head of a token counts alike).
struct CategoryEstimates {
  std::map<std::string, CategoryEstimate> classes, groups;  // by name
  CategoryEstimate all;
  // The first group of TokenCategories::contrast minus the second, from the same resamples.
  CategoryEstimate contrast;
};

// Of the cells [first_cell, first_cell + cells) together. The collector must have been given classes.
CategoryEstimates category_estimates(const GateCollector& collector, const TokenCategories& categories,
                                     const BlockBootstrap& bootstrap, std::int64_t first_cell, std::int64_t cells);

}  // namespace satformer::analysis
