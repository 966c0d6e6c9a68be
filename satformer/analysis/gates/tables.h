#pragma once
// The tables of a summary of gates. docs/gates.md lists their columns.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "satformer/analysis/gates/summary.h"
#include "satformer/analysis/output/csv.h"

namespace satformer::analysis {

// heads.csv, layers.csv, positions.csv, categories.csv, histogram.csv, tokens.csv: those that the summary has numbers
// for.
void add_gate_tables(const GateSummary& gates, Tables& tables);

// The heads at each of several steps of training, one after the other.
using GatesAtStep = std::pair<std::int64_t, const GateSummary*>;
std::string heads_over_steps(const std::vector<GatesAtStep>& points);

}  // namespace satformer::analysis
