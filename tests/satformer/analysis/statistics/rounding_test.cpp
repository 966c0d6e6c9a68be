#include "satformer/analysis/statistics/rounding.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"

using namespace satformer::analysis;

TEST_CASE("a report's numbers have seven significant digits", "[analysis]") {
  CHECK(rounded(1.0 / 3) == 0.3333333);
  CHECK(rounded(-12345678.9) == -12345680.0);
  CHECK(rounded(rounded(2.0 / 3)) == rounded(2.0 / 3));
  CHECK(std::isnan(rounded(std::numeric_limits<double>::infinity())));
  const Estimate estimate = rounded(Estimate{1.0 / 3, Interval{1.0 / 7, 2.0 / 3}});
  CHECK(estimate.value == 0.3333333);
  CHECK(estimate.interval->low == 0.1428571);
  CHECK(estimate.interval->high == 0.6666667);
  CHECK_FALSE(rounded(Estimate{}).interval.has_value());
  const Spreads spreads = spreads_of({Moments(3, 1.0 / 3, 3.0), Moments()});
  CHECK(spreads.means.front() == 0.3333333);
  CHECK(spreads.deviations.front() == 1.0);
  CHECK(std::isnan(spreads.means.back()));
}
