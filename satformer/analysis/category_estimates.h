#pragma once
// Mean gate and open share of each token class and group, and their contrast, with bootstrap intervals.
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "satformer/analysis/bootstrap.h"
#include "satformer/analysis/gate_collector.h"
#include "satformer/analysis/token_categories.h"

namespace satformer::analysis {

struct Estimate {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: no such token
  std::optional<Interval> interval;
};

struct CategoryEstimate {
  Estimate mean, open_share;
};

// Of one head, or of several together (every head of a token counts alike).
struct CategoryTable {
  std::vector<CategoryEstimate> classes, groups;
  CategoryEstimate all;
  // The first group of TokenCategories::contrast minus the second, from the same resamples.
  CategoryEstimate contrast;
};

// Of the cells [first_cell, first_cell + cells) together. The collector must have been given classes.
CategoryTable category_table(const GateCollector& collector, const TokenCategories& categories,
                             const BlockBootstrap& bootstrap, std::int64_t first_cell, std::int64_t cells);

}  // namespace satformer::analysis
