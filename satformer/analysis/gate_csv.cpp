#include "satformer/analysis/gate_csv.h"

#include <fmt/format.h>

#include <vector>

#include "satformer/analysis/csv_table.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

std::vector<std::string> series_columns(const json& gates) {
  std::vector<std::string> columns{"values", "mean", "std", "mean_magnitude", "min", "max", "zero_fraction"};
  for (const json& threshold : gates["thresholds"]) columns.push_back("below_" + threshold.dump());
  columns.insert(columns.end(), {"open_share", "mean_while_open"});
  for (const json& quantile : gates["quantiles"]) columns.push_back("quantile_" + quantile.dump());
  columns.insert(columns.end(), {"contribution_mean", "contribution_std", "first_share_mean", "first_share_std"});
  return columns;
}

void add_series(std::vector<std::string>& fields, const json& series) {
  for (const char* key : {"values", "mean", "std", "mean_magnitude", "min", "max", "zero_fraction"}) {
    fields.push_back(csv_cell(series[key]));
  }
  for (const json& share : series["below"]) fields.push_back(csv_cell(share));
  for (const char* key : {"open_share", "mean_while_open"}) fields.push_back(csv_cell(series[key]));
  for (const json& quantile : series["quantiles"]) fields.push_back(csv_cell(quantile));
  for (const char* key : {"contribution", "first_share"}) {
    fields.push_back(csv_cell(series[key]["mean"]));
    fields.push_back(csv_cell(series[key]["std"]));
  }
}

// One row for each of `rows` with the values of `keys`, then the numbers of its series.
std::string series_table(const json& gates, const json& rows, const std::vector<std::string>& keys) {
  std::vector<std::string> columns = keys;
  for (std::string& column : series_columns(gates)) columns.push_back(std::move(column));
  CsvTable table(columns);
  for (const json& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& key : keys) fields.push_back(csv_cell(row[key]));
    add_series(fields, row);
    table.add(fields);
  }
  return table.take();
}

std::string histogram_table(const json& histogram) {
  CsvTable table({"layer", "head", "from", "to", "count"});
  const json& edges = histogram["edges"];
  for (const json& head : histogram["heads"]) {
    const std::string layer = csv_cell(head["layer"]), index = csv_cell(head["head"]);
    table.add({layer, index, "0", "0", csv_cell(head["zeros"])});
    for (std::size_t i = 0; i < head["counts"].size(); ++i) {
      table.add({layer, index, i == 0 ? "" : csv_cell(edges[i - 1]), i < edges.size() ? csv_cell(edges[i]) : "",
                 csv_cell(head["counts"][i])});
    }
  }
  return table.take();
}

std::string positions_table(const json& positions) {
  CsvTable table({"layer", "head", "from", "tokens", "mean", "open_share"});
  for (const json& head : positions["heads"]) {
    for (std::size_t i = 0; i < positions["from"].size(); ++i) {
      table.add({csv_cell(head["layer"]), csv_cell(head["head"]), csv_cell(positions["from"][i]),
                 csv_cell(positions["tokens"][i]), csv_cell(head["mean"][i]), csv_cell(head["open_share"][i])});
    }
  }
  return table.take();
}

void add_category(CsvTable& table, const std::vector<std::string>& place, const json& estimates) {
  std::vector<std::string> fields = place;
  for (const char* statistic : {"mean", "open_share"}) {
    for (const char* key : {"value", "low", "high"}) fields.push_back(csv_cell(estimates[statistic][key]));
  }
  table.add(fields);
}

std::string categories_table(const json& categories) {
  CsvTable table({"layer", "head", "kind", "name", "mean", "mean_low", "mean_high", "open_share", "open_share_low",
                  "open_share_high"});
  const auto add = [&table](const json& part) {
    const std::string layer = part.contains("layer") ? csv_cell(part["layer"]) : "";
    const std::string head = part.contains("head") ? csv_cell(part["head"]) : "";
    for (const auto& [name, estimates] : part["classes"].items())
      add_category(table, {layer, head, "class", name}, estimates);
    for (const auto& [name, estimates] : part["groups"].items())
      add_category(table, {layer, head, "group", name}, estimates);
    add_category(table, {layer, head, "all", ""}, part["all"]);
    add_category(table, {layer, head, "contrast", ""}, part["contrast"]);
  };
  add(categories["model"]);
  for (const json& layer : categories["layers"]) add(layer);
  for (const json& head : categories["heads"]) add(head);
  return table.take();
}

std::string tokens_table(const json& tokens) {
  CsvTable table({"layer", "head", "end", "rank", "id", "piece", "mean", "count"});
  for (const json& head : tokens["heads"]) {
    for (const char* end : {"top", "bottom"}) {
      std::int64_t rank = 0;
      for (const json& token : head[end]) {
        table.add({csv_cell(head["layer"]), csv_cell(head["head"]), end, std::to_string(++rank), csv_cell(token["id"]),
                   csv_cell(token["piece"]), csv_cell(token["mean"]), csv_cell(token["count"])});
      }
    }
  }
  return table.take();
}

std::string access_table(const json& access) {
  CsvTable table({"reader", "layer", "kv_head", "source", "weight_mean", "weight_std", "early_share", "lookback",
                  "lambda1", "lambda2", "contribution_mean", "first_share_mean"});
  for (const json& layer : access["layers"]) {
    for (std::size_t head = 0; head < layer["contribution"]["mean"].size(); ++head) {
      table.add({"", csv_cell(layer["layer"]), std::to_string(head), "", "", "", "", "", csv_cell(layer["lambda1"]),
                 csv_cell(layer["lambda2"]), csv_cell(layer["contribution"]["mean"][head]),
                 csv_cell(layer["first_share"]["mean"][head])});
    }
  }
  for (const json& reader : access["readers"]) {
    for (std::size_t i = 0; i < reader["sources"].size(); ++i) {
      table.add({csv_cell(reader["reader"]), csv_cell(reader["layer"]), "", csv_cell(reader["sources"][i]),
                 csv_cell(reader["weights"]["mean"][i]), csv_cell(reader["weights"]["std"][i]),
                 csv_cell(reader["early_share"]), csv_cell(reader["lookback"]), "", "", "", ""});
    }
  }
  return table.take();
}

std::string dynamics_table(const json& dynamics) {
  const json& gates = dynamics.front()["gates"];
  json rows = json::array();
  for (const json& point : dynamics) {
    for (json head : point["gates"]["heads"]) {
      head["step"] = point["step"];
      rows.push_back(std::move(head));
    }
  }
  return series_table(gates, rows, {"step", "layer", "head"});
}

}  // namespace

std::map<std::string, std::string> gate_tables(const json& document) {
  std::map<std::string, std::string> tables;
  const json& gates = document["gates"];
  if (!gates.is_null()) {
    tables["heads.csv"] = series_table(gates, gates["heads"], {"layer", "head"});
    tables["layers.csv"] = series_table(gates, gates["layers"], {"layer", "gini", "top_head_share"});
    tables["histogram.csv"] = histogram_table(gates["histogram"]);
    tables["positions.csv"] = positions_table(gates["positions"]);
    if (!gates["categories"].is_null()) tables["categories.csv"] = categories_table(gates["categories"]);
    tables["tokens.csv"] = tokens_table(gates["tokens"]);
    const json& dynamics = document["dynamics"];
    if (!dynamics.is_null() && !dynamics.empty()) tables["dynamics.csv"] = dynamics_table(dynamics);
  }
  if (!document["access"].is_null()) tables["access.csv"] = access_table(document["access"]);
  return tables;
}

}  // namespace satformer::analysis
