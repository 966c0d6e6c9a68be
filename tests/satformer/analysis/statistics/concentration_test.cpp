#include "satformer/analysis/statistics/concentration.h"

#include "tests/catch.h"

using satformer::analysis::gini;
using satformer::analysis::top_share;

TEST_CASE("Gini and the share of the largest", "[analysis]") {
  CHECK(gini({1, 1, 1, 1}) == Approx(0.0).margin(1e-15));
  CHECK(gini({0, 0, 0, 5}) == Approx(0.75));
  CHECK(gini({3, 1, 2}) == Approx(2.0 / 9));  // mean absolute difference 8/9 over twice the mean 2
  CHECK(gini({0, 0}) == 0.0);
  CHECK(gini({7}) == 0.0);
  CHECK(top_share({1, 5, 2, 2}, 1) == Approx(0.5));
  CHECK(top_share({1, 5, 2, 2}, 2) == Approx(0.7));
  CHECK(top_share({1, 5}, 10) == Approx(1.0));
  CHECK(top_share({0, 0}, 1) == 0.0);
}
