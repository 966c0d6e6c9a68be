#include "satformer/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "satformer/core/error.h"

namespace satformer::bench {

Summary summarize(std::vector<double> samples) {
  require(!samples.empty(), "summarize: expected at least one sample, got none");
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  const double median = samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples.front(), samples.back()};
}

Quartiles quartiles(std::vector<double> samples) {
  require(!samples.empty(), "quartiles: expected at least one sample, got none");
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double fraction) {
    const double place = fraction * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return std::lerp(samples[below], samples[above], place - static_cast<double>(below));
  };
  return {at(0.25), at(0.75)};
}

std::vector<double> ratios_by_round(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  require(numerators.size() == denominators.size(), "ratios_by_round: expected two lists of one length, got {} and {}",
          numerators.size(), denominators.size());
  std::vector<double> ratios(numerators.size());
  std::transform(numerators.begin(), numerators.end(), denominators.begin(), ratios.begin(), std::divides<>());
  return ratios;
}

nlohmann::json to_json(const Summary& summary) {
  return {{"median", summary.median}, {"min", summary.min}, {"max", summary.max}};
}

}  // namespace satformer::bench
