#include "satformer/analysis/statistics/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/catch.h"

namespace {

using namespace satformer::analysis;

std::vector<float> gate_like(std::size_t count, bool with_negatives) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal(0.0f, 0.7f);
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const float x = normal(random);
    values.push_back(with_negatives ? x : std::max(x, 0.0f));
  }
  return values;
}

ValueHistogram histogram_of(const std::vector<float>& values) {
  ValueHistogram histogram;
  for (const float value : values) histogram.add(value);
  return histogram;
}

float sorted_quantile(std::vector<float> values, double q) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[static_cast<std::size_t>(std::max<std::ptrdiff_t>(rank - 1, 0))];
}

}  // namespace

TEST_CASE("quantiles of the histogram are those of the sorted values within 2^-8", "[analysis]") {
  for (const bool negatives : {false, true}) {
    const std::vector<float> values = gate_like(4999, negatives);
    const ValueHistogram histogram = histogram_of(values);
    for (const double q : {0.0, 0.01, 0.05, 0.25, 0.5, 0.500001, 0.75, 0.95, 0.999, 1.0}) {
      const double expected = sorted_quantile(values, q);
      CAPTURE(negatives, q);
      CHECK(std::abs(histogram.quantile(q) - expected) <= std::abs(expected) / 256);
    }
    CHECK(histogram.min() == *std::min_element(values.begin(), values.end()));
    CHECK(histogram.max() == *std::max_element(values.begin(), values.end()));
    CHECK(histogram.zeros() == std::count(values.begin(), values.end(), 0.0f));
  }
}

TEST_CASE("the histogram's quantiles at the ends of its range", "[analysis]") {
  CHECK(std::isnan(ValueHistogram().quantile(0.5)));
  CHECK(histogram_of({0.25f}).quantile(0.5) == 0.25);
  CHECK(histogram_of({1e-30f, 1e-30f}).quantile(0.5) == Approx(1e-30).margin(1e-6));
  const ValueHistogram large = histogram_of({1e6f, 2e6f});  // beyond the range: told by the bin's edge, not lost
  CHECK(large.quantile(0.5) >= 4096.0);
  CHECK(large.max() == 2e6);
  CHECK(histogram_of({-1e6f, 0.0f, 0.0f}).quantile(0.5) == 0.0);
}

TEST_CASE("counts between edges are exact", "[analysis]") {
  const std::vector<float> values = gate_like(20000, true);
  std::vector<float> on_edges = values;
  const std::vector<double> edges = display_edges(-1.3, 1.9, 23);
  for (const double edge : edges) on_edges.push_back(static_cast<float>(edge));
  const std::vector<std::int64_t> counts = histogram_of(on_edges).counts_between(edges);
  REQUIRE(counts.size() == edges.size() + 1);
  CHECK(std::find(edges.begin(), edges.end(), 0.0) != edges.end());
  std::vector<std::int64_t> expected(counts.size());
  for (const float value : on_edges) {
    if (value == 0.0f) continue;
    const auto at = value > 0 ? std::upper_bound(edges.begin(), edges.end(), value)
                              : std::lower_bound(edges.begin(), edges.end(), value);
    ++expected[static_cast<std::size_t>(at - edges.begin())];
  }
  CHECK(counts == expected);
}

TEST_CASE("display edges ascend and are edges of bins", "[analysis]") {
  for (const auto& [low, high] :
       {std::pair{0.0, 0.8}, std::pair{-1.0, 1.0}, std::pair{0.0, 1e-3}, std::pair{-5.0, 0.0}}) {
    const std::vector<double> edges = display_edges(low, high, 40);
    CAPTURE(low, high);
    REQUIRE(edges.size() >= 30);
    CHECK(std::is_sorted(edges.begin(), edges.end()));
    CHECK(edges.front() == Approx(low).epsilon(0.05));
    CHECK(edges.back() == Approx(high).epsilon(0.05));
    for (const double edge : edges) CHECK(ValueHistogram::edge_below(edge) == edge);
  }
}

TEST_CASE("merged histograms are the histogram of all values", "[analysis]") {
  const std::vector<float> values = gate_like(1000, true);
  const std::vector<float> first(values.begin(), values.begin() + 300), rest(values.begin() + 300, values.end());
  ValueHistogram merged = histogram_of(first);
  merged.merge(histogram_of(rest));
  merged.merge(ValueHistogram());
  const ValueHistogram whole = histogram_of(values);
  CHECK(merged.count() == whole.count());
  CHECK(merged.min() == whole.min());
  CHECK(merged.max() == whole.max());
  const std::vector<double> edges = display_edges(-2, 2, 50);
  CHECK(merged.counts_between(edges) == whole.counts_between(edges));
}
