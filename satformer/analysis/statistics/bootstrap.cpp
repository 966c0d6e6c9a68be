#include "satformer/analysis/statistics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace satformer::analysis {
namespace {

// Linear between the order statistics; q in [0, 1].
double sorted_quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

}  // namespace

std::int64_t windows_per_block(std::int64_t windows, std::int64_t max_blocks) {
  return std::max<std::int64_t>(1, (windows + max_blocks - 1) / max_blocks);
}

BlockBootstrap::BlockBootstrap(std::int64_t num_blocks, const BootstrapOptions& options)
    : num_blocks_(num_blocks),
      resamples_(options.resamples),
      confidence_(options.confidence),
      times_(static_cast<std::size_t>(num_blocks * options.resamples)) {
  const auto blocks = static_cast<std::uint64_t>(num_blocks);
  std::mt19937_64 random(options.seed);
  for (std::int64_t r = 0; r < resamples_; ++r) {
    for (std::uint64_t draw = 0; draw < blocks; ++draw) {
      const auto block = static_cast<std::int64_t>(random() % blocks);  // a bias of less than 2^-50
      times_[static_cast<std::size_t>(block * resamples_ + r)] += 1.0f;
    }
  }
}

std::vector<double> BlockBootstrap::resample(std::span<const double> block_sums) const {
  std::vector<double> sums(static_cast<std::size_t>(resamples_));
  const float* times = times_.data();
  for (const double block_sum : block_sums) {
    for (double& sum : sums) sum += *times++ * block_sum;
  }
  return sums;
}

std::optional<Interval> BlockBootstrap::interval(std::vector<double> statistics) const {
  const std::size_t all = statistics.size();
  std::erase_if(statistics, [](double value) { return !std::isfinite(value); });
  if (num_blocks_ < 2 || statistics.empty() || 2 * statistics.size() < all) return std::nullopt;
  std::sort(statistics.begin(), statistics.end());
  const double tail = (1.0 - confidence_) / 2.0;
  return Interval{sorted_quantile(statistics, tail), sorted_quantile(statistics, 1.0 - tail)};
}

}  // namespace satformer::analysis
