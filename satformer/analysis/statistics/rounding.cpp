#include "satformer/analysis/statistics/rounding.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace satformer::analysis {

double rounded(double value) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = rounded(value);
  return values;
}

Estimate rounded(Estimate estimate) {
  estimate.value = rounded(estimate.value);
  if (estimate.interval)
    estimate.interval = Interval{rounded(estimate.interval->low), rounded(estimate.interval->high)};
  return estimate;
}

Spread spread_of(const Moments& moments) { return {rounded(moments.mean()), rounded(moments.standard_deviation())}; }

Spreads spreads_of(const std::vector<Moments>& moments) {
  Spreads spreads;
  for (const Moments& one : moments) {
    const auto [mean, deviation] = spread_of(one);
    spreads.means.push_back(mean);
    spreads.deviations.push_back(deviation);
  }
  return spreads;
}

}  // namespace satformer::analysis
