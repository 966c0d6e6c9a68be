#include "satformer/analysis/statistics/moments.h"

#include <cmath>
#include <random>
#include <vector>

#include "tests/catch.h"

using satformer::analysis::Moments;

TEST_CASE("moments in one pass, merged, are those of two passes", "[analysis]") {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(1000.0, 0.01);  // a mean that would ruin a sum of squares in float32
  std::vector<double> values(3000);
  for (double& value : values) value = normal(random);
  double mean = 0.0, squares = 0.0;
  for (const double value : values) mean += value / 3000;
  for (const double value : values) squares += (value - mean) * (value - mean);
  Moments first, second;
  for (std::size_t i = 0; i < values.size(); ++i) (i < 1000 ? first : second).add(values[i]);
  first.merge(second);
  first.merge(Moments());
  CHECK(first.count() == 3000);
  CHECK(first.mean() == Approx(mean).epsilon(1e-13));
  CHECK(first.standard_deviation() == Approx(std::sqrt(squares / 3000)).epsilon(1e-9));
  CHECK(std::isnan(Moments().mean()));
  CHECK(std::isnan(Moments().standard_deviation()));
}
