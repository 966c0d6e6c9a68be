#include "satformer/analysis/statistics/concentration.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace satformer::analysis {

double gini(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum <= 0.0) return 0.0;
  const auto n = static_cast<double>(values.size());
  double weighted = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) weighted += (2.0 * static_cast<double>(i + 1) - n - 1.0) * values[i];
  return weighted / (n * sum);
}

double top_share(std::vector<double> values, std::int64_t count) {
  std::sort(values.begin(), values.end(), std::greater<>());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum <= 0.0) return 0.0;
  const auto taken = std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(values.size()));
  return std::accumulate(values.begin(), values.begin() + taken, 0.0) / sum;
}

}  // namespace satformer::analysis
