#include "satformer/data/sampler.h"

#include <algorithm>
#include <array>
#include <limits>

#include "satformer/data/split.h"
#include "tests/satformer/data/support.h"

#include "tests/catch.h"

namespace satformer::data {
namespace {

using testing::contains;
using testing::error_of;

bool is_bijection(std::uint64_t size, std::uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<bool> seen(size, false);
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t to = permutation(i);
    if (to >= size || seen[to]) return false;
    seen[to] = true;
  }
  return true;
}

}  // namespace

TEST_CASE("The permutation is a bijection", "[data][sampler]") {
  int wrong = 0;
  for (std::uint64_t size = 1; size <= 300; ++size) {
    for (std::uint64_t key = 0; key < 4; ++key) wrong += !is_bijection(size, key * 0x123456789abcdefu);
  }
  for (const std::uint64_t size : {1023u, 1024u, 1025u, 65536u, 65537u, 99991u, 1000003u}) {
    wrong += !is_bijection(size, size);
  }
  CHECK(wrong == 0);
  // Beyond what can be listed: distinct starts end at distinct places within the size.
  for (const std::uint64_t size : {(std::uint64_t{1} << 40) + 12345, std::numeric_limits<std::uint64_t>::max()}) {
    const Permutation permutation(size, 5);
    std::vector<std::uint64_t> to;
    for (std::uint64_t i = 0; i < 20000; ++i) to.push_back(permutation(i < 10000 ? i : size - 1 - i));
    std::sort(to.begin(), to.end());
    CHECK(to.back() < size);
    CHECK(std::adjacent_find(to.begin(), to.end()) == to.end());
  }
  CHECK(contains(error_of([] { Permutation(0, 1); }), "size must be at least 1"));
  CHECK(contains(error_of([] { Permutation(5, 1)(5); }), "index 5 is outside [0, 5)"));
}

TEST_CASE("The permutation's places are evenly spread over the keys", "[data][sampler]") {
  // Chi-squared with 6 degrees of freedom for each start: above 22.5 once in a thousand.
  constexpr std::uint64_t kSize = 7, kKeys = 7000;
  for (std::uint64_t start = 0; start < kSize; ++start) {
    std::array<double, kSize> counts{};
    for (std::uint64_t key = 0; key < kKeys; ++key) ++counts.at(Permutation(kSize, key)(start));
    double chi_squared = 0;
    for (const double count : counts) chi_squared += (count - 1000) * (count - 1000) / 1000;
    INFO(start);
    CHECK(chi_squared < 22.5);
  }
}

TEST_CASE("Neighbouring samples are not neighbouring windows", "[data][sampler]") {
  const Permutation permutation(10000, 3);
  int close = 0;
  for (std::uint64_t i = 0; i + 1 < 10000; ++i) {
    const auto a = static_cast<std::int64_t>(permutation(i)), b = static_cast<std::int64_t>(permutation(i + 1));
    close += std::abs(a - b) <= 50;  // 1 % of pairs by chance
  }
  CHECK(close < 150);
}

TEST_CASE("Every window comes once an epoch, in another order each", "[data][sampler]") {
  for (const std::int64_t num_tokens : {9, 16, 17, 100, 1000}) {
    const WindowSampler sampler(num_tokens, 8, 42);
    const std::int64_t windows = (num_tokens - 1) / 8;
    REQUIRE(sampler.windows_per_epoch() == windows);
    std::vector<std::vector<std::int64_t>> epochs;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::int64_t> starts;
      for (std::int64_t i = 0; i < windows; ++i) starts.push_back(sampler.window_start(epoch * windows + i));
      epochs.push_back(starts);
      std::sort(starts.begin(), starts.end());
      for (std::int64_t i = 0; i < windows; ++i) CHECK(starts[i] == i * 8);
      CHECK(starts.back() + 8 < num_tokens);
    }
    if (windows > 10) {
      CHECK(epochs[0] != epochs[1]);
      CHECK(epochs[1] != epochs[2]);
      CHECK(WindowSampler(num_tokens, 8, 43).window_start(0) + WindowSampler(num_tokens, 8, 44).window_start(0) +
                WindowSampler(num_tokens, 8, 45).window_start(0) !=
            3 * epochs[0][0]);
    }
  }
}

TEST_CASE("A split without a window is refused", "[data][sampler]") {
  CHECK(WindowSampler(257, 256, 0).windows_per_epoch() == 1);
  CHECK(contains(error_of([] { WindowSampler(50, 256, 0); }), "has 50 tokens; one window of seq_length 256 needs 257"));
  CHECK(contains(error_of([] { WindowSampler(256, 256, 0); }), "needs 257"));
  CHECK(contains(error_of([] { WindowSampler(50, 0, 0); }), "seq_length must be at least 1"));
}

TEST_CASE("Validation has exactly its share of the documents", "[data][sampler]") {
  const auto chosen = [](std::int64_t documents, double fraction, std::uint64_t seed) {
    const DocumentSplit split(documents, fraction, seed);
    std::vector<std::int64_t> val;
    for (std::int64_t i = 0; i < documents; ++i) {
      if (split.is_val(static_cast<std::uint64_t>(i))) val.push_back(i);
    }
    CHECK(static_cast<std::int64_t>(val.size()) == split.num_val());
    return val;
  };
  CHECK(chosen(2, 0.01, 0).size() == 1);
  CHECK(chosen(2, 0.99, 0).size() == 1);
  CHECK(chosen(3, 0.99, 0).size() == 2);
  CHECK(chosen(100, 0.01, 0).size() == 1);
  CHECK(chosen(1000, 0.0251, 0).size() == 25);
  CHECK(chosen(1000, 0.1, 1) == chosen(1000, 0.1, 1));
  CHECK(chosen(1000, 0.1, 1) != chosen(1000, 0.1, 2));
}

}  // namespace satformer::data
