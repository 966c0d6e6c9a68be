#include "satformer/analysis/ablation_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "satformer/analysis/csv_table.h"
#include "satformer/analysis/gate_plots.h"
#include "satformer/io/files.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

Plot change_map(const json& ablations, const std::string& title) {
  HeatMap map{.title = title, .x_label = "KV head", .y_label = "layer", .columns = {}, .rows = {}, .values = {}};
  for (const json& row : ablations) {
    const std::string layer = row["layer"].dump(), head = row["head"].dump();
    if (map.rows.empty() || map.rows.back() != layer) {
      map.rows.push_back(layer);
      map.values.emplace_back();
    }
    if (map.rows.size() == 1) map.columns.push_back(head);
    map.values.back().push_back(plot_number(row["change"]["value"]));
  }
  return {"change_by_head", title, "Each cell is the loss's change when that head's gates alone are replaced.",
          script_of(map)};
}

Plot change_by_layer(const json& ablations, const std::string& title) {
  LinePlot plot{
      .title = title, .x_label = "layer", .y_label = "loss, nats", .lines = {}, .zero_line = true, .whole_x = true};
  Line line{.title = "change", .x = {}, .y = {}};
  for (const json& row : ablations) {
    line.x.push_back(plot_number(row["layer"]));
    line.y.push_back(plot_number(row["change"]["value"]));
    line.low.push_back(plot_number(row["change"]["low"]));
    line.high.push_back(plot_number(row["change"]["high"]));
  }
  plot.lines.push_back(std::move(line));
  return {"change_by_layer", title, "One layer's gates replaced at a time; the band is the bootstrap interval.",
          script_of(plot)};
}

Plot change_by_category(const json& ablations, const std::string& title) {
  BarPlot plot{.title = title, .y_label = "loss, nats", .names = {}, .values = {}, .low = {}, .high = {}};
  for (const json& row : ablations) {
    plot.names.push_back(row["category"].get<std::string>());
    plot.values.push_back(plot_number(row["change"]["value"]));
    plot.low.push_back(plot_number(row["change"]["low"]));
    plot.high.push_back(plot_number(row["change"]["high"]));
  }
  return {"change_by_category", title, "The gates of one group of tokens replaced at a time; bootstrap intervals.",
          script_of(plot)};
}

}  // namespace

std::vector<Plot> ablation_plots(const json& document) {
  const auto mode = document["mode"].get<std::string>(), scope = document["scope"].get<std::string>();
  const std::string title = fmt::format("Loss change, gates replaced: {}", mode);
  const json& ablations = document["ablations"];
  std::vector<Plot> plots;
  if (scope == "head") plots.push_back(change_map(ablations, title));
  if (scope == "layer") plots.push_back(change_by_layer(ablations, title));
  if (scope == "category") plots.push_back(change_by_category(ablations, title));
  std::erase_if(plots, [](const Plot& plot) { return plot.script.empty(); });
  return plots;
}

std::vector<json> ranked(const json& document) {
  std::vector<json> rows(document["ablations"].begin(), document["ablations"].end());
  std::sort(rows.begin(), rows.end(), [](const json& a, const json& b) { return a["rank"] < b["rank"]; });
  return rows;
}

std::string ablation_name(const json& ablation) {
  if (!ablation["category"].is_null()) return ablation["category"].get<std::string>() + " tokens";
  if (ablation["layer"].is_null()) return "all gates";
  if (ablation["head"].is_null()) return fmt::format("layer {}", ablation["layer"].get<int>());
  return fmt::format("layer {} head {}", ablation["layer"].get<int>(), ablation["head"].get<int>());
}

std::string ablation_finding(const json& document) {
  const json most = ranked(document).front();
  const json& change = most["change"];
  if (change["value"].is_null()) {
    return fmt::format("Replaced by {}, {} give a loss that is not finite.", document["mode"].get<std::string>(),
                       ablation_name(most));
  }
  std::string text = fmt::format("Replaced by {}, {} the loss by {:+.4f} nats", document["mode"].get<std::string>(),
                                 ablation_name(most) + (most["layer"].is_null() ? " change" : " changes"),
                                 plot_number(change["value"]));
  if (change["low"].is_null()) return text + "; too few blocks of text for an interval.";
  const double low = plot_number(change["low"]), high = plot_number(change["high"]);
  text += fmt::format(" [{:+.4f}, {:+.4f}]", low, high);
  if (document["ablations"].size() > 1) text += fmt::format(", most of {}", document["ablations"].size());
  return text + (low > 0    ? ": the model reads what they carry."
                 : high < 0 ? ": the model is better without."
                            : ", which the data do not tell from zero.");
}

std::string ablation_table(const json& document) {
  CsvTable table({"rank", "layer", "head", "category", "loss", "perplexity", "change", "low", "high"});
  for (const json& row : ranked(document)) {
    const json& change = row["change"];
    table.add({csv_cell(row["rank"]), csv_cell(row["layer"]), csv_cell(row["head"]), csv_cell(row["category"]),
               csv_cell(row["loss"]), csv_cell(row["perplexity"]), csv_cell(change["value"]), csv_cell(change["low"]),
               csv_cell(change["high"])});
  }
  return table.take();
}

void write_ablation(const json& document, const fs::path& folder) {
  write_file_atomically(folder / "ablation.json", document.dump(1) + "\n");
  write_file_atomically(folder / "ablation.csv", ablation_table(document));
  const std::vector<Plot> plots = ablation_plots(document);
  if (!plots.empty()) draw_if_possible(plots, folder);
}

}  // namespace satformer::analysis
