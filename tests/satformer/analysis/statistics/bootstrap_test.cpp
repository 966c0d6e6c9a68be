#include "satformer/analysis/statistics/bootstrap.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/catch.h"

namespace {

using namespace satformer::analysis;

std::vector<double> noise(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(2.0, 1.0);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

std::vector<double> resampled_mean(const BlockBootstrap& bootstrap, const std::vector<double>& sums) {
  std::vector<double> means = bootstrap.resample(sums);
  for (double& mean : means) mean /= static_cast<double>(sums.size());
  return means;
}

}  // namespace

TEST_CASE("windows are cut into at most so many blocks", "[analysis]") {
  CHECK(windows_per_block(1, 256) == 1);
  CHECK(windows_per_block(256, 256) == 1);
  CHECK(windows_per_block(257, 256) == 2);
  CHECK(windows_per_block(1'000'000, 256) == 3907);
}

TEST_CASE("every resample draws as many blocks as there are", "[analysis]") {
  const BlockBootstrap bootstrap(7, {.resamples = 50});
  for (const double count : bootstrap.resample(std::vector<double>(7, 1.0))) CHECK(count == 7.0);
}

TEST_CASE("the bootstrap's interval of a mean has the width that theory says", "[analysis]") {
  const std::vector<double> values = noise(200, 5);
  double mean = 0.0, squares = 0.0;
  for (const double value : values) mean += value / 200;
  for (const double value : values) squares += (value - mean) * (value - mean) / 200;
  const double half = 1.959964 * std::sqrt(squares / 200);
  const BlockBootstrap bootstrap(200, {.resamples = 4000, .confidence = 0.95, .seed = 1});
  const auto interval = bootstrap.interval(resampled_mean(bootstrap, values));
  REQUIRE(interval.has_value());
  CHECK(interval->high - mean == Approx(half).epsilon(0.1));
  CHECK(mean - interval->low == Approx(half).epsilon(0.1));
}

TEST_CASE("the bootstrap's intervals hold the truth about as often as they say", "[analysis]") {
  int held = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    const BlockBootstrap bootstrap(50, {.resamples = 400, .confidence = 0.9, .seed = 9});
    const auto interval =
        bootstrap.interval(resampled_mean(bootstrap, noise(50, 100 + static_cast<std::uint64_t>(trial))));
    held += interval->low <= 2.0 && 2.0 <= interval->high ? 1 : 0;
  }
  // Binomial(300, 0.9) has standard deviation 5.2; the percentile interval of 50 is a little narrow.
  CHECK(held > 300 * 0.9 - 21);
  CHECK(held < 300 * 0.9 + 16);
}

TEST_CASE("the same seed gives the same resamples, another seed others", "[analysis]") {
  const std::vector<double> values = noise(30, 8);
  const auto with_seed = [&](std::uint64_t seed) {
    return BlockBootstrap(30, {.resamples = 20, .seed = seed}).resample(values);
  };
  CHECK(with_seed(4) == with_seed(4));
  CHECK(with_seed(4) != with_seed(5));
}

TEST_CASE("no interval where the data do not carry one", "[analysis]") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const BlockBootstrap one(1, {.resamples = 10}), two(2, {.resamples = 4});
  CHECK_FALSE(one.interval(std::vector<double>(10, 1.0)).has_value());
  CHECK_FALSE(two.interval({none, none, none, 1.0}).has_value());
  REQUIRE(two.interval({none, 1.0, 3.0, none}).has_value());
  CHECK(two.interval({none, 1.0, 3.0, none})->low == Approx(1.05));
}
