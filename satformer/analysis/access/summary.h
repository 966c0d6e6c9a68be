#pragma once
// What is told of the other architectures' access to early representations (collect.h). Numbers are rounded
// (statistics/rounding.h); NaN stands for what does not exist.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "satformer/analysis/access/collect.h"
#include "satformer/analysis/statistics/rounding.h"

namespace satformer::analysis {

struct StaticSummary {
  std::int64_t layer = 0;
  double lambda1 = 0.0, lambda2 = 0.0;
  Spreads contribution, first_share;  // of each KV head
};

struct ReaderSummary {
  std::string name;
  std::int64_t layer = 0;
  std::vector<std::int64_t> sources;
  Spreads weights;  // of each source
  double early_share = 0.0, lookback = 0.0;
};

struct MatricesSummary {
  std::string module;
  Spreads alpha, beta;  // row by row
};

struct AccessSummary {
  std::vector<StaticSummary> layers;
  std::vector<ReaderSummary> readers;
  std::vector<MatricesSummary> matrices;
};

// Nothing when there is no access to tell of.
std::optional<AccessSummary> summarize_access(const DepthAccess& access);

}  // namespace satformer::analysis
