#pragma once
// This build of satformer against another one, for those who upgrade or change the code: each round times a training
// step of both, one after the other, and the build that is first in one round is second in the next.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/bench/comparison.h"

namespace satformer::bench {

struct OtherBuild {
  std::filesystem::path executable;
  std::string version;
};

// Asks the executable for its version and its measuring process (bench/worker.h) for a sign of life. Error names the
// executable: no such file, not executable, no satformer, or one whose measuring process answers otherwise.
OtherBuild inspect_build(const std::filesystem::path& executable);

enum class Build { ours, other };

// One architecture in both builds.
struct BuildPair {
  std::string architecture;
  Measured ours, other;
  std::vector<Build> first_by_round;

  // By round: tokens a second, ours / other's.
  std::vector<double> ratios() const;
};

struct BuildComparison {
  BenchPlan plan;
  OtherBuild other;
  std::vector<BuildPair> architectures;
};

// `worker_command` as in run_bench, for this build. The architectures follow one another, so that two models are in
// memory at once; the progress counts the rounds of all. Error, before anything is timed, when the other build cannot
// train one of the configurations or makes another number of parameters of it.
BuildComparison compare_builds(const BenchPlan& plan, const std::vector<std::string>& worker_command,
                               const OtherBuild& other, const BenchProgress& progress);

std::string build_comparison_table(const BuildComparison& comparison);

// {"satformer": version, "other": {"executable", "satformer"}, "settings",
//  "architectures": {NAME: {
//    "ratio": the median of ratio_by_round, "ratio_quartiles": [lower, upper], "ratio_by_round": [ours / other's],
//    "peak_memory_ratio": ours / other's, "first_by_round": ["ours" or "other"],
//    "ours", "other": {"tokens_per_second": {"median", "min", "max"}, "tokens_per_second_by_round": [...],
//      "num_parameters", "peak_memory_bytes", "memory_growth_bytes", "seconds_by_part"}}}}
nlohmann::json build_comparison_json(const BuildComparison& comparison);

}  // namespace satformer::bench
