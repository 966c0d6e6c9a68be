#pragma once
// A comparison's result for people and for machines.
#include <nlohmann/json.hpp>
#include <string>

#include "satformer/bench/comparison.h"

namespace satformer::bench {

// {"settings", "machine", "model", "matrix_product", "bound", "architectures": {NAME: {
//    "tokens_per_second": {"median", "min", "max"}, "tokens_per_second_by_round": [...],
//    "ratio_to_transformer", "bound_fraction":  ratios of the medians (the first is null without the transformer)
//    "ratio_to_transformer_by_round", "bound_fraction_by_round": {"median", "min", "max"} of the ratios of each round,
//    "peak_memory_bytes", "memory_growth_bytes",  growth: over the idle process (CPU)
//    "num_parameters", "model_flops_utilization", "seconds_by_part", "operators"}}}
// model_flops_utilization: bench/trunk.h's operations a second over matrix_product's.
nlohmann::json bench_json(const BenchResult& result);

std::string bench_table(const BenchResult& result);

}  // namespace satformer::bench
