#include "satformer/core/range.h"

#include <algorithm>
#include <limits>

#include "tests/catch.h"

using satformer::partition;
using satformer::Range;

TEST_CASE("shares follow one another without gaps and differ by one at most", "[core]") {
  for (const int size : {1, 2, 3, 4, 7, 64}) {
    for (const std::int64_t count : {0, 1, 2, 5, 6, 7, 63, 64, 65, 1000}) {
      std::int64_t end = 0, least = count, most = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Range share = partition(count, rank, size);
        REQUIRE(share.begin == end);
        end = share.end;
        least = std::min(least, share.size());
        most = std::max(most, share.size());
      }
      CHECK(end == count);
      CHECK(most - least <= 1);
    }
  }
}

TEST_CASE("shares of the largest count do not overflow", "[core]") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(partition(kMost, 0, 1000).begin == 0);
  CHECK(partition(kMost, 999, 1000).end == kMost);
}
