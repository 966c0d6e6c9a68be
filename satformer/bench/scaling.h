#pragma once
// How much speed N ranks keep when they train together: one rank with all the threads (or one GPU) against N ranks that
// divide the same batch and, on the CPU, the same threads.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/bench/comparison.h"

namespace satformer::bench {

struct Scaling {
  std::string architecture;
  std::vector<double> one, ranks;  // tokens a second by round: of one rank, of all N together
};

struct ScalingResult {
  BenchPlan plan;
  std::vector<Scaling> architectures;
};

// `worker_command` as in run_bench. Each round times both of every architecture, one after the other.
ScalingResult run_scaling(const BenchPlan& plan, const std::vector<std::string>& worker_command,
                          const BenchProgress& progress);

// By round: ranks / one on the CPU, where both have the same processors; ranks / (N one) on GPUs.
std::vector<double> efficiencies(const ScalingResult& result, const Scaling& scaling);

std::string scaling_table(const ScalingResult& result);
nlohmann::json scaling_json(const ScalingResult& result);

}  // namespace satformer::bench
