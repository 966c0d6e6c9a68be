// Runs the registered tests: PROGRAM [NAME...], all of them without a name.
#include "tests/cuda_host/testing.h"

#include <algorithm>

namespace cuda_host {
namespace {

struct Test {
  const char* name;
  void (*body)();
  Repeat repeat;
};

std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}

struct NamedOrder {
  const char* name;
  Order order;
  unsigned seed;
};
// Random order has two kinds, by odd and even seeds; each finds faults that the other misses.
constexpr NamedOrder kOrders[] = {{"random, seed 1", Order::kRandom, 1},
                                  {"random, seed 2", Order::kRandom, 2},
                                  {"forward", Order::kForward, 1},
                                  {"reverse", Order::kReverse, 1}};

constexpr int kShownFailures = 5;
int failures = 0;  // of the running test

int run_test(const Test& test, const NamedOrder& order) {
  failures = 0;
  options = Options();
  options.order = order.order;
  options.seed = order.seed;
  try {
    test.body();
  } catch (const std::exception& error) {
    report_failure("exception", 0, error.what());
  }
  if (failures) std::printf("FAILED %s, thread order %s: %d failures\n", test.name, order.name, failures);
  return failures;
}

}  // namespace

bool register_test(const char* name, void (*body)(), Repeat repeat) {
  tests().push_back({name, body, repeat});
  return true;
}

void report_failure(const char* file, int line, const std::string& text) {
  if (++failures <= kShownFailures) std::printf("%s:%d: %s\n", file, line, text.c_str());
}

}  // namespace cuda_host

int main(int argc, char** argv) {
  using namespace cuda_host;
  const std::vector<std::string> chosen(argv + 1, argv + argc);
  int ran = 0, failed = 0;
  for (const Test& test : tests()) {
    if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), test.name) == chosen.end()) continue;
    ++ran;
    int bad = 0;
    for (const NamedOrder& order : kOrders) {
      bad += run_test(test, order);
      if (test.repeat == Repeat::kOnce) break;
    }
    failed += bad != 0;
  }
  std::printf("%d tests, %d failed\n", ran, failed);
  return ran == 0 || failed != 0;
}
