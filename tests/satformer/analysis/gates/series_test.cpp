#include "satformer/analysis/gates/series.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/catch.h"

namespace {

using namespace satformer::analysis;

}  // namespace

TEST_CASE("a series of gates by hand", "[analysis]") {
  GateSeries series({.thresholds = {0.1, 0.5}, .open_above = 0.0});
  const float none = std::numeric_limits<float>::infinity();  // v = 0
  series.add(0.0f, 0.0f);
  series.add(0.0625f, 1.0f);
  series.add(0.5f, 3.0f);
  series.add(-0.25f, none);
  CHECK(series.count() == 4);
  CHECK(series.mean() == 0.078125);
  CHECK(series.mean_magnitude() == 0.203125);
  CHECK(series.zero_fraction() == 0.25);
  CHECK(series.below_shares() == std::vector<double>{0.5, 0.75});
  CHECK(series.open_share() == 0.75);
  CHECK(series.mean_while_open() == Approx(0.3125 / 3));
  CHECK(series.contribution().count() == 3);
  CHECK(series.contribution().mean() == Approx(4.0 / 3));
  CHECK(series.first_share().mean() == Approx((0.0 + 0.5 + 0.75) / 3));
  CHECK(series.quantile(0.5) == 0.0);
  CHECK(series.quantile(0.75) == Approx(0.0625).epsilon(1.0 / 256));
}

TEST_CASE("open is above the threshold, not at it", "[analysis]") {
  GateSeries series({.thresholds = {}, .open_above = 0.25});
  for (const float alpha : {0.25f, 0.5f, -0.5f, 0.0f}) series.add(alpha, 0.0f);
  CHECK(series.open_share() == 0.5);
  CHECK(series.mean_while_open() == 0.0);
}

TEST_CASE("merged series are the series of all values", "[analysis]") {
  const GateSettings settings;
  GateSeries whole(settings), first(settings), second(settings);
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 2000; ++i) {
    const float alpha = std::max(0.0f, normal(random)), contribution = alpha * 0.3f;
    whole.add(alpha, contribution);
    (i % 3 == 0 ? first : second).add(alpha, contribution);
  }
  first.merge(second);
  CHECK(first.count() == whole.count());
  CHECK(first.mean() == Approx(whole.mean()).epsilon(1e-12));
  CHECK(first.standard_deviation() == Approx(whole.standard_deviation()).epsilon(1e-12));
  CHECK(first.below_shares() == whole.below_shares());
  CHECK(first.mean_while_open() == Approx(whole.mean_while_open()).epsilon(1e-12));
  CHECK(first.contribution().mean() == Approx(whole.contribution().mean()).epsilon(1e-12));
  CHECK(first.quantile(0.9) == whole.quantile(0.9));
}
