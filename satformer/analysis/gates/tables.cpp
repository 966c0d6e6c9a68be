#include "satformer/analysis/gates/tables.h"

namespace satformer::analysis {
namespace {

using Fields = std::vector<std::string>;

Fields with_series_columns(Fields columns, const GateSummary& gates) {
  for (const char* name : {"values", "mean", "std", "mean_magnitude", "min", "max", "zero_share"}) {
    columns.emplace_back(name);
  }
  for (const double threshold : gates.thresholds) columns.push_back("below_" + csv_cell(threshold));
  columns.insert(columns.end(), {"open_share", "mean_while_open"});
  for (const double quantile : gates.quantiles) columns.push_back("quantile_" + csv_cell(quantile));
  columns.insert(columns.end(), {"contribution_mean", "contribution_std", "first_share_mean", "first_share_std"});
  return columns;
}

Fields with_series(Fields fields, const SeriesSummary& series) {
  fields.push_back(csv_cell(series.values));
  const auto add = [&fields](const std::vector<double>& values) {
    for (const double value : values) fields.push_back(csv_cell(value));
  };
  add({series.mean, series.deviation, series.mean_magnitude, series.min, series.max, series.zero_fraction});
  add(series.below);
  add({series.open_share, series.mean_while_open});
  add(series.quantiles);
  for (const Spread& spread : {series.contribution, series.first_share}) add({spread.mean, spread.deviation});
  return fields;
}

std::string heads_table(const GateSummary& gates) {
  CsvTable table(with_series_columns({"layer", "head"}, gates));
  for (const auto& head : gates.heads) table.add(with_series({csv_cell(head.layer), csv_cell(head.head)}, head));
  return table.take();
}

std::string layers_table(const GateSummary& gates) {
  CsvTable table(with_series_columns({"layer", "gini", "top_head_share"}, gates));
  for (const auto& layer : gates.layers) {
    table.add(with_series({csv_cell(layer.layer), csv_cell(layer.gini), csv_cell(layer.top_head_share)}, layer));
  }
  return table.take();
}

std::string histogram_table(const HistogramSummary& histogram) {
  CsvTable table({"layer", "head", "from", "to", "count"});
  const std::vector<double>& edges = histogram.edges;
  for (const auto& head : histogram.heads) {
    const std::string layer = csv_cell(head.layer), index = csv_cell(head.head);
    table.add({layer, index, "0", "0", csv_cell(head.zeros)});
    for (std::size_t i = 0; i < head.counts.size(); ++i) {
      table.add({layer, index, i == 0 ? "" : csv_cell(edges[i - 1]), i < edges.size() ? csv_cell(edges[i]) : "",
                 csv_cell(head.counts[i])});
    }
  }
  return table.take();
}

std::string positions_table(const PositionSummary& positions) {
  CsvTable table({"layer", "head", "from", "tokens", "mean", "open_share"});
  for (const auto& head : positions.heads) {
    for (std::size_t i = 0; i < positions.from.size(); ++i) {
      table.add({csv_cell(head.layer), csv_cell(head.head), csv_cell(positions.from[i]), csv_cell(positions.tokens[i]),
                 csv_cell(head.means[i]), csv_cell(head.open_shares[i])});
    }
  }
  return table.take();
}

void add_estimate(CsvTable& table, Fields fields, const CategoryEstimate& estimate) {
  add_cells(fields, estimate.mean);
  add_cells(fields, estimate.open_share);
  table.add(fields);
}

std::string categories_table(const CategorySummary& categories) {
  CsvTable table({"layer", "head", "kind", "name", "mean", "mean_low", "mean_high", "open_share", "open_share_low",
                  "open_share_high"});
  const auto add = [&table](const std::string& layer, const std::string& head, const CategoryEstimates& part) {
    for (const auto& [name, estimate] : part.classes) add_estimate(table, {layer, head, "class", name}, estimate);
    for (const auto& [name, estimate] : part.groups) add_estimate(table, {layer, head, "group", name}, estimate);
    add_estimate(table, {layer, head, "all", ""}, part.all);
    add_estimate(table, {layer, head, "contrast", ""}, part.contrast);
  };
  add("", "", categories.model);
  for (const auto& layer : categories.layers) add(csv_cell(layer.layer), "", layer);
  for (const auto& head : categories.heads) add(csv_cell(head.layer), csv_cell(head.head), head);
  return table.take();
}

std::string tokens_table(const TokenList& tokens) {
  CsvTable table({"layer", "head", "end", "rank", "id", "piece", "mean", "count"});
  const auto add = [&table](const auto& head, const char* end, const std::vector<ListedToken>& list) {
    std::int64_t rank = 0;
    for (const ListedToken& token : list) {
      table.add({csv_cell(head.layer), csv_cell(head.head), end, csv_cell(++rank), csv_cell(token.id), token.piece,
                 csv_cell(token.mean), csv_cell(token.count)});
    }
  };
  for (const auto& head : tokens.heads) {
    add(head, "top", head.top);
    add(head, "bottom", head.bottom);
  }
  return table.take();
}

}  // namespace

void add_gate_tables(const GateSummary& gates, Tables& tables) {
  tables["heads.csv"] = heads_table(gates);
  tables["layers.csv"] = layers_table(gates);
  if (gates.positions) tables["positions.csv"] = positions_table(*gates.positions);
  if (gates.categories) tables["categories.csv"] = categories_table(*gates.categories);
  if (!gates.details) return;
  tables["histogram.csv"] = histogram_table(gates.details->histogram);
  tables["tokens.csv"] = tokens_table(gates.details->tokens);
}

std::string heads_over_steps(const std::vector<GatesAtStep>& points) {
  CsvTable table(with_series_columns({"step", "layer", "head"}, *points.front().second));
  for (const auto& [step, gates] : points) {
    for (const auto& head : gates->heads) {
      table.add(with_series({csv_cell(step), csv_cell(head.layer), csv_cell(head.head)}, head));
    }
  }
  return table.take();
}

}  // namespace satformer::analysis
