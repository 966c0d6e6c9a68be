#pragma once
// A comparison's result for people and for machines.
#include <nlohmann/json.hpp>
#include <string>

#include "satformer/bench/comparison.h"

namespace satformer::bench {

// {"settings", "machine", "models": {NAME: its configuration}, "model_flops_per_token",
//  "matrix_product": {"size", "dtype", "flops_per_second": {"median", "min", "max"}},
//  "bound": as an architecture, without memory and ratios,
//  "architectures": {NAME: {
//    "tokens_per_second": {"median", "min", "max"}, "tokens_per_second_by_round": [...],
//    "ratio_to_transformer", "bound_fraction": medians of each round's ratio (the first null without the transformer),
//    "ratio_to_transformer_by_round", "bound_fraction_by_round": {"median", "min", "max"} of the same,
//    "peak_memory_bytes", "memory_growth_bytes": peak, and peak over the idle process (bench/worker.h),
//    "num_parameters",
//    "model_flops_utilization": tokens/s times model_flops_per_token (bench/trunk.h) over matrix_product's rate,
//    "seconds_by_part", "profiled_step_seconds", "operators": of one step more (bench/operator_times.h)}}}
nlohmann::json bench_json(const BenchResult& result);

// The same as a table, without the operators.
std::string bench_table(const BenchResult& result);

}  // namespace satformer::bench
