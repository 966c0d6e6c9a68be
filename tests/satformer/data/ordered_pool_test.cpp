#include "satformer/data/ordered_pool.h"

#include <memory>
#include <vector>

#include "satformer/core/error.h"
#include "tests/support/errors.h"

#include "tests/catch.h"

namespace satformer::data {
namespace {

using testing::error_of;

}  // namespace

TEST_CASE("The ordered pool keeps order and passes exceptions on", "[data][prepare]") {
  std::vector<int> results;
  {
    OrderedPool<int, int> pool(4, 6, [](int x) { return 2 * x; }, [&](int y) { results.push_back(y); });
    for (int i = 0; i < 500; ++i) pool.push(i);
    pool.finish();
  }
  REQUIRE(results.size() == 500);
  for (int i = 0; i < 500; ++i) CHECK(results[i] == 2 * i);
  OrderedPool<int, int> failing(
      2, 4,
      [](int x) {
        require(x != 7, "seven");
        return x;
      },
      [](int) {});
  CHECK(error_of([&] {
          for (int i = 0; i < 100; ++i) failing.push(i);
          failing.finish();
        }) == "seven");
}

TEST_CASE("a pool whose threads cannot all start ends those that did", "[data][prepare]") {
  struct Worker {
    std::shared_ptr<int> copies = std::make_shared<int>(0);
    Worker() = default;
    Worker(const Worker& other) : copies(other.copies) { require(++*copies < 8, "no more"); }
    int operator()(int x) const { return x; }
  };
  const auto start = [](int threads) { OrderedPool<int, int>(threads, 4, Worker(), [](int) {}); };
  CHECK(error_of([&] { start(100); }) == "no more");
}

}  // namespace satformer::data
