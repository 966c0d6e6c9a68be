#pragma once
// What is told of one model's gates. docs/gates.md describes every number. Those that are measured are rounded
// (statistics/rounding.h); NaN stands for what does not exist.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "satformer/analysis/gates/categories.h"
#include "satformer/analysis/gates/collector.h"
#include "satformer/analysis/statistics/bootstrap.h"
#include "satformer/analysis/statistics/rounding.h"
#include "satformer/analysis/tokens/classifier.h"

namespace satformer::analysis {

// Numbers, and whose they are.
template <typename Numbers>
struct OfLayer : Numbers {
  std::int64_t layer = 0;
};
template <typename Numbers>
struct OfHead : Numbers {
  std::int64_t layer = 0, head = 0;
};

struct SeriesSummary {
  std::int64_t values = 0;  // how many
  double mean = 0.0, deviation = 0.0, mean_magnitude = 0.0, min = 0.0, max = 0.0, zero_fraction = 0.0;
  std::vector<double> below;  // share of magnitudes below each threshold
  double open_share = 0.0, mean_while_open = 0.0;
  std::vector<double> quantiles;
  Spread contribution, first_share;
};

// All heads of a layer, and how unevenly they share the mean magnitude.
struct LayerSummary : SeriesSummary {
  double gini = 0.0, top_head_share = 0.0;
};

// How unevenly the model's heads share the mean magnitude.
struct Concentration {
  struct Top {
    std::int64_t heads = 0;  // so many of the largest
    double share = 0.0, even_share = 0.0;
  };
  std::int64_t heads = 0;
  double gini = 0.0;
  std::vector<Top> top;  // 5, 10, 25 and 50 % of the heads
};

struct PositionProfile {
  std::vector<double> means, open_shares;  // [bucket]
};
struct PositionSummary {
  std::vector<std::int64_t> from, tokens;  // [bucket]: its first position, how many tokens
  std::vector<OfLayer<PositionProfile>> layers;
  std::vector<OfHead<PositionProfile>> heads;
};

struct CountedClass {
  std::string name, group;
  std::int64_t tokens = 0;
};
struct CategorySummary {
  std::string name;
  std::optional<nlohmann::json> sources;  // as the categories' file has them; not at a run's other checkpoints
  std::pair<std::string, std::string> contrast;
  std::int64_t blocks = 0;  // of the bootstrap
  BootstrapOptions bootstrap;
  std::vector<CountedClass> classes;
  CategoryEstimates model;
  std::vector<OfLayer<CategoryEstimates>> layers;
  std::vector<OfHead<CategoryEstimates>> heads;  // not at a run's other checkpoints
};

struct BinCounts {
  std::int64_t zeros = 0;
  std::vector<std::int64_t> counts;  // before the first edge, between each two, after the last one
};
struct HistogramSummary {
  std::vector<double> edges;
  std::vector<OfLayer<BinCounts>> layers;
  std::vector<OfHead<BinCounts>> heads;
};

struct ListedToken {
  std::int64_t id = 0;
  std::string piece;
  double mean = 0.0;
  std::int64_t count = 0;
};
struct ListedTokens {
  std::vector<ListedToken> top, bottom;  // the largest and smallest means, the extreme one first
};
struct TokenList {
  std::int64_t min_count = 0;
  std::vector<OfHead<ListedTokens>> heads;
};

struct LayerText {
  std::vector<std::vector<double>> heads;  // [head][token]: the gate
};
// The sample, token by token.
struct TextSummary {
  std::vector<std::string> pieces, classes;  // no classes without a classifier
  std::vector<OfLayer<LayerText>> gates;
};

// What is told of the model under study alone, and not of others that it is compared with.
struct GateDetails {
  HistogramSummary histogram;
  TokenList tokens;
  TextSummary text;
};

struct GateSummary {
  std::string function;            // the name of the config key value_residual_gate
  std::vector<double> thresholds;  // of SeriesSummary::below
  double open_above = 0.0;
  std::vector<double> quantiles;  // of SeriesSummary::quantiles
  SeriesSummary model;
  std::vector<OfLayer<LayerSummary>> layers;
  std::vector<OfHead<SeriesSummary>> heads;
  Concentration concentration;
  std::optional<PositionSummary> positions;   // not at a run's other checkpoints
  std::optional<CategorySummary> categories;  // with a classifier
  std::optional<GateDetails> details;
};

struct GateSummaryOptions {
  std::vector<double> quantiles{0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
  std::int64_t histogram_bins = 40;
  std::int64_t listed_tokens = 10;    // top and bottom tokens of a head
  std::int64_t min_token_count = 10;  // a token is listed when the data hold it so often
  BootstrapOptions bootstrap;
};

// All but the details.
GateSummary summarize_gates(const GateCollector& collector, const std::string& function,
                            const TokenClassifier* classifier, const GateSummaryOptions& options);

GateDetails gate_details(const GateCollector& collector, const TokenClassifier* classifier,
                         const GateSummaryOptions& options);

// What of a summary is kept for each checkpoint of a run: without the profile by position, the classes of single heads
// and the details.
GateSummary for_dynamics(GateSummary summary);

}  // namespace satformer::analysis
