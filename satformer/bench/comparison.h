#pragma once
// Contestants measured side by side: every round times each of them once, one after the other, and begins with another
// one each time, so that a machine that slows down or warms up does so for all.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "satformer/bench/contestant.h"
#include "satformer/bench/settings.h"

namespace satformer::bench {

struct BenchResult {
  BenchPlan plan;
  std::vector<Measured> architectures;
  Measured bound;                     // the trunk's products and attention alone
  std::vector<double> product_rates;  // FLOP/s of a large matrix product, by round
  std::int64_t product_size = 0;      // of its matrices
};

// Told before each thing that is done: how many rounds are over, and what comes.
using BenchProgress = std::function<void(std::int64_t rounds_done, const std::string& what)>;

// `worker_command` starts a program that calls serve_measurements on its standard input and output. All contestants are
// in memory at once; only one computes. Error names the contestant that failed.
BenchResult run_bench(const BenchPlan& plan, const std::vector<std::string>& worker_command,
                      const BenchProgress& progress);

}  // namespace satformer::bench
