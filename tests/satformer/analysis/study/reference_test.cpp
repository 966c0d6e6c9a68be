#include <algorithm>
#include <limits>
#include <utility>

#include "satformer/analysis/gates/token_summary.h"
#include "satformer/analysis/study/files.h"
#include "satformer/analysis/study/plots.h"
#include "satformer/analysis/study/report.h"
#include "tests/satformer/analysis/reference.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;

// 40 tokens of 2 layers with 2 heads.
GateCollector collected(float shift) {
  GateCollector collector({.layers = {1, 3},
                           .heads = 2,
                           .vocab_size = 6,
                           .position_buckets = 4,
                           .classes = 3,
                           .blocks = 4,
                           .text_tokens = 5},
                          {});
  for (std::int64_t begin = 0; begin < 40; begin += 10) {
    std::vector<TokenRow> rows;
    for (std::int64_t i = 0; i < 10; ++i) {
      const std::int64_t token = begin + i;
      rows.push_back({.row = i,
                      .index = token,
                      .id = token * 5 % 6,
                      .bucket = position_bucket(token % 8),
                      .token_class = token * 7 % 3,
                      .block = begin / 10});
    }
    collector.begin_batch(rows);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      std::vector<float> alpha, contribution;
      for (std::int64_t i = 0; i < 20; ++i) {
        const std::int64_t number = (begin * 2 + i) * 37 + layer * 11;
        alpha.push_back(std::max(0.0f, static_cast<float>(number % 23 - 9) / 16 + shift));
        contribution.push_back(i == 7 ? std::numeric_limits<float>::infinity() : alpha.back() * 0.75f);
      }
      collector.add(layer, alpha, contribution);
    }
  }
  return collector;
}

ModelStudy gates_of(const GateCollector& collector, bool details) {
  GateSummaryOptions options{.histogram_bins = 6, .listed_tokens = 2, .min_token_count = 3, .bootstrap = {}};
  options.bootstrap.resamples = 50;
  GateSummary gates = summarize_gates(collector, "relu", nullptr, options);
  gates.categories = summarize_categories(collector, reference_categories(), options.bootstrap);
  if (details) gates.details = gate_details(collector, nullptr, options);
  return {.gates = std::move(gates), .access = {}};
}

Moments about(double mean) { return {8, mean, mean * mean / 3}; }

ModelStudy access_of() {
  DepthAccess access;
  for (std::int64_t layer = 1; layer < 4; ++layer) {
    const double at = static_cast<double>(layer) / 7;
    access.layers.push_back({.layer = layer,
                             .lambda1 = at - 0.4,
                             .lambda2 = 1 - at,
                             .contribution = {about(at), about(2 * at)},
                             .first_share = {about(at / 3), Moments()}});
    DepthReader reader{.name = "block " + std::to_string(layer),
                       .layer = layer,
                       .sources = {0, layer},
                       .weights = {about(at), about(-at)},
                       .early_share = about(at / 2),
                       .lookback = about(3 * at)};
    if (layer == 2) reader.early_share = reader.lookback = Moments();
    access.readers.push_back(reader);
  }
  access.matrices.push_back({.name = "block 0 mlp", .alpha = {about(1.0 / 3), about(0)}, .beta = {about(2.0 / 3)}});
  return {.gates = {}, .access = summarize_access(access)};
}

GatesReport report_of(const ModelStudy& own, const ModelStudy& before) {
  GatesReport report;
  report.version = "0";
  report.checkpoint = {.path = "runs/<x>",
                       .architecture = "satformer",
                       .num_parameters = 1234,
                       .config = {{"hidden_size", 32}},
                       .step = 10,
                       .tokens = 640};
  report.data = {.name = "d", .tokens = 40, .windows = 5, .seq_length = 8, .dtype = "float32"};
  report.model = own;
  report.initialization = {before, 5, true};
  report.dynamics = {point_of(before, 0, 0), point_of(own, 10, 640)};
  report.findings = findings_of(report);
  return report;
}

}  // namespace

TEST_CASE("a report's JSON, tables and plots are those of the reference, byte for byte", "[analysis]") {
  const std::vector<std::pair<std::string, GatesReport>> reports{
      {"gates", report_of(gates_of(collected(0.0f), true), gates_of(collected(0.125f), false))},
      {"access", report_of(access_of(), access_of())}};
  for (const auto& [name, report] : reports) {
    CAPTURE(name);
    CHECK(to_json(report).dump(1) + "\n" == reference(name + ".json"));
    std::string tables;
    for (const auto& [file, text] : report_tables(report)) tables += "# " + file + "\r\n" + text;
    CHECK(tables == reference(name + ".csv"));
    CHECK(text_of(report_plots(report)) == reference(name + ".gnuplot"));
  }
}
