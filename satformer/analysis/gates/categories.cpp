#include "satformer/analysis/gates/categories.h"

#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace satformer::analysis {
namespace {

// Sums over tokens and heads by block, and what is made of them.
struct BlockSums {
  std::vector<double> count, alpha, open;  // [blocks]

  explicit BlockSums(std::int64_t blocks)
      : count(static_cast<std::size_t>(blocks)), alpha(count.size()), open(count.size()) {}
  void add(const BlockSums& other);
};

void add_to(std::vector<double>& sum, std::span<const double> values, double factor = 1.0) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * values[i];
}

void BlockSums::add(const BlockSums& other) {
  add_to(count, other.count);
  add_to(alpha, other.alpha);
  add_to(open, other.open);
}

double total(const std::vector<double>& sums) { return std::accumulate(sums.begin(), sums.end(), 0.0); }

// A ratio of sums, of all blocks and in each resample; 0 / 0 is NaN, which an interval leaves out.
struct Ratio {
  double value = 0.0;
  std::vector<double> resampled;
};

Ratio ratio_of(const std::vector<double>& numerators, const std::vector<double>& denominators,
               const BlockBootstrap& bootstrap) {
  Ratio ratio{total(numerators) / total(denominators), bootstrap.resample(numerators)};
  const std::vector<double> below = bootstrap.resample(denominators);
  for (std::size_t r = 0; r < below.size(); ++r) ratio.resampled[r] /= below[r];
  return ratio;
}

Ratio difference(Ratio a, const Ratio& b) {
  a.value -= b.value;
  for (std::size_t r = 0; r < a.resampled.size(); ++r) a.resampled[r] -= b.resampled[r];
  return a;
}

Estimate estimate(Ratio ratio, const BlockBootstrap& bootstrap) {
  return {ratio.value, bootstrap.interval(std::move(ratio.resampled))};
}

struct Ratios {
  Ratio mean, open;
};

Ratios ratios_of(const BlockSums& sums, const BlockBootstrap& bootstrap) {
  return {ratio_of(sums.alpha, sums.count, bootstrap), ratio_of(sums.open, sums.count, bootstrap)};
}

CategoryEstimate estimates(Ratios ratios, const BlockBootstrap& bootstrap) {
  return {estimate(std::move(ratios.mean), bootstrap), estimate(std::move(ratios.open), bootstrap)};
}

}  // namespace

CategoryEstimates category_estimates(const GateCollector& collector, const TokenCategories& categories,
                                     const BlockBootstrap& bootstrap, std::int64_t first_cell, std::int64_t cells) {
  const std::int64_t blocks = collector.shape().blocks;
  std::vector<BlockSums> groups(categories.groups().size(), BlockSums(blocks));
  BlockSums all(blocks);
  CategoryEstimates result;
  for (std::size_t c = 0; c < categories.classes().size(); ++c) {
    const auto token_class = static_cast<std::int64_t>(c);
    BlockSums sums(blocks);
    add_to(sums.count, collector.class_tokens(token_class), static_cast<double>(cells));
    for (std::int64_t cell = first_cell; cell < first_cell + cells; ++cell) {
      add_to(sums.alpha, collector.class_alpha(cell, token_class));
      add_to(sums.open, collector.class_open(cell, token_class));
    }
    groups[static_cast<std::size_t>(categories.group_of(static_cast<int>(c)))].add(sums);
    all.add(sums);
    result.classes[categories.classes()[c].name] = estimates(ratios_of(sums, bootstrap), bootstrap);
  }
  std::vector<Ratios> ratios;
  for (const BlockSums& sums : groups) ratios.push_back(ratios_of(sums, bootstrap));
  const Ratios& first = ratios[static_cast<std::size_t>(categories.contrast().first)];
  const Ratios& second = ratios[static_cast<std::size_t>(categories.contrast().second)];
  result.contrast = estimates({difference(first.mean, second.mean), difference(first.open, second.open)}, bootstrap);
  for (std::size_t g = 0; g < ratios.size(); ++g) {
    result.groups[categories.groups()[g]] = estimates(std::move(ratios[g]), bootstrap);
  }
  result.all = estimates(ratios_of(all, bootstrap), bootstrap);
  return result;
}

}  // namespace satformer::analysis
