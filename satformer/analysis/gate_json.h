#pragma once
// What is told of one model's gates, as JSON. docs/gates.md describes every key.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/analysis/bootstrap.h"
#include "satformer/analysis/gate_collector.h"
#include "satformer/analysis/token_classifier.h"

namespace satformer::analysis {

struct GateJsonOptions {
  std::string gate_function;  // the name of the config key value_residual_gate
  std::vector<double> quantiles{0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
  std::int64_t histogram_bins = 40;
  std::int64_t listed_tokens = 10;    // top and bottom tokens of a head
  std::int64_t min_token_count = 10;  // a token is listed when the data hold it so often
  BootstrapOptions bootstrap;
};

// The numbers: function, thresholds, open_above, quantiles, model, layers, heads, concentration, positions, categories
// (null without a classifier).
nlohmann::json gate_numbers(const GateCollector& collector, const TokenClassifier* classifier,
                            const GateJsonOptions& options);

// Besides these: histogram, tokens, text.
nlohmann::json gate_details(const GateCollector& collector, const TokenClassifier* classifier,
                            const GateJsonOptions& options);

// Parts of gate_numbers and gate_details.
nlohmann::json histogram_json(const GateCollector& collector, std::int64_t bins);
nlohmann::json positions_json(const GateCollector& collector);
nlohmann::json categories_json(const GateCollector& collector, const TokenCategories& categories,
                               const BootstrapOptions& options);
nlohmann::json listed_tokens_json(const GateCollector& collector, const TokenClassifier* classifier,
                                  const GateJsonOptions& options);
nlohmann::json text_json(const GateCollector& collector, const TokenClassifier* classifier);

}  // namespace satformer::analysis
