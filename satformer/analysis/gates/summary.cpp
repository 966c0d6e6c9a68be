#include "satformer/analysis/gates/summary.h"

#include <algorithm>
#include <cmath>

#include "satformer/analysis/gates/cells.h"
#include "satformer/analysis/gates/token_summary.h"
#include "satformer/analysis/statistics/concentration.h"

namespace satformer::analysis {
namespace {

SeriesSummary summarize(const GateSeries& series, const std::vector<double>& quantiles) {
  SeriesSummary summary{.values = series.count(),
                        .mean = rounded(series.mean()),
                        .deviation = rounded(series.standard_deviation()),
                        .mean_magnitude = rounded(series.mean_magnitude()),
                        .min = rounded(series.histogram().min()),
                        .max = rounded(series.histogram().max()),
                        .zero_fraction = rounded(series.zero_fraction()),
                        .below = rounded(series.below_shares()),
                        .open_share = rounded(series.open_share()),
                        .mean_while_open = rounded(series.mean_while_open()),
                        .quantiles = {},
                        .contribution = spread_of(series.contribution()),
                        .first_share = spread_of(series.first_share())};
  for (const double q : quantiles) summary.quantiles.push_back(rounded(series.quantile(q)));
  return summary;
}

std::vector<double> magnitudes(const GateCollector& collector, std::int64_t first_cell, std::int64_t cells) {
  std::vector<double> values;
  for (std::int64_t cell = first_cell; cell < first_cell + cells; ++cell) {
    values.push_back(collector.head(cell).mean_magnitude());
  }
  return values;
}

Concentration summarize_concentration(const GateCollector& collector) {
  const std::int64_t cells = collector.shape().cells();
  const std::vector<double> values = magnitudes(collector, 0, cells);
  Concentration result{.heads = cells, .gini = rounded(gini(values)), .top = {}};
  for (const double part : {0.05, 0.1, 0.25, 0.5}) {
    const auto count = static_cast<std::int64_t>(std::ceil(part * static_cast<double>(cells)));
    result.top.push_back({.heads = count,
                          .share = rounded(top_share(values, count)),
                          .even_share = rounded(static_cast<double>(count) / static_cast<double>(cells))});
  }
  return result;
}

// Of cells together; NaN for buckets without tokens.
PositionProfile profile(const GateCollector& collector, std::int64_t first_cell, std::int64_t cells) {
  PositionProfile result;
  for (std::int64_t bucket = 0; bucket < collector.shape().position_buckets; ++bucket) {
    GateCollector::Sums sums;
    for (std::int64_t cell = first_cell; cell < first_cell + cells; ++cell) {
      sums.alpha += collector.bucket_sums(cell, bucket).alpha;
      sums.open += collector.bucket_sums(cell, bucket).open;
    }
    const auto count = static_cast<double>(collector.bucket_tokens(bucket) * cells);
    result.means.push_back(rounded(sums.alpha / count));
    result.open_shares.push_back(rounded(sums.open / count));
  }
  return result;
}

PositionSummary summarize_positions(const GateCollector& collector) {
  const GateShape& shape = collector.shape();
  PositionSummary summary;
  for (std::int64_t bucket = 0; bucket < shape.position_buckets; ++bucket) {
    summary.from.push_back(bucket_begin(bucket));
    summary.tokens.push_back(collector.bucket_tokens(bucket));
  }
  summary.layers = by_layer(
      shape, [&](std::int64_t, std::int64_t first_cell) { return profile(collector, first_cell, shape.heads); });
  summary.heads = by_head(shape, [&](std::int64_t cell) { return profile(collector, cell, 1); });
  return summary;
}

HistogramSummary summarize_histogram(const GateCollector& collector, std::int64_t bins) {
  const GateSeries model = collector.model();
  // All but the last half per mille on each side, so that a few large gates do not squeeze the rest.
  double low = std::min(0.0, model.quantile(0.0005)), high = std::max(0.0, model.quantile(0.9995));
  if (low == high) high = 1.0;
  const std::vector<double> edges = display_edges(low, high, bins);
  const auto counted = [&](const GateSeries& series) {
    return BinCounts{series.histogram().zeros(), series.histogram().counts_between(edges)};
  };
  const GateShape& shape = collector.shape();
  return {.edges = rounded(edges),
          .layers = by_layer(shape, [&](std::int64_t index, std::int64_t) { return counted(collector.layer(index)); }),
          .heads = by_head(shape, [&](std::int64_t cell) { return counted(collector.head(cell)); })};
}

}  // namespace

GateSummary summarize_gates(const GateCollector& collector, const std::string& function,
                            const TokenClassifier* classifier, const GateSummaryOptions& options) {
  const GateShape& shape = collector.shape();
  GateSummary summary{.function = function,
                      .thresholds = collector.settings().thresholds,
                      .open_above = collector.settings().open_above,
                      .quantiles = options.quantiles,
                      .model = summarize(collector.model(), options.quantiles),
                      .layers = {},
                      .heads = {},
                      .concentration = summarize_concentration(collector),
                      .positions = summarize_positions(collector),
                      .categories = {},
                      .details = {}};
  summary.layers = by_layer(shape, [&](std::int64_t index, std::int64_t first_cell) {
    const std::vector<double> values = magnitudes(collector, first_cell, shape.heads);
    return LayerSummary{summarize(collector.layer(index), options.quantiles), rounded(gini(values)),
                        rounded(top_share(values, 1))};
  });
  summary.heads = by_head(shape, [&](std::int64_t cell) { return summarize(collector.head(cell), options.quantiles); });
  if (classifier != nullptr) {
    summary.categories = summarize_categories(collector, classifier->categories(), options.bootstrap);
  }
  return summary;
}

GateDetails gate_details(const GateCollector& collector, const TokenClassifier* classifier,
                         const GateSummaryOptions& options) {
  return {.histogram = summarize_histogram(collector, options.histogram_bins),
          .tokens = list_tokens(collector, classifier, options),
          .text = text_sample(collector, classifier)};
}

GateSummary for_dynamics(GateSummary summary) {
  summary.positions.reset();
  summary.details.reset();
  if (summary.categories) {
    summary.categories->sources.reset();
    summary.categories->heads.clear();
  }
  return summary;
}

}  // namespace satformer::analysis
