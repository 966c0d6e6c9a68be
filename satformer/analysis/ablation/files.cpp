#include "satformer/analysis/ablation/files.h"

#include <fmt/format.h>

#include "satformer/analysis/output/csv.h"
#include "satformer/analysis/output/gnuplot.h"
#include "satformer/io/files.h"

namespace satformer::analysis {
namespace {

using Rows = std::vector<AblationRow>;

Plot change_map(const Rows& ablations, const std::string& title) {
  HeatMap map{.title = title, .x_label = "KV head", .y_label = "layer", .columns = {}, .rows = {}, .values = {}};
  for (const AblationRow& row : ablations) {
    const std::string layer = std::to_string(row.layer.value());
    if (map.rows.empty() || map.rows.back() != layer) {
      map.rows.push_back(layer);
      map.values.emplace_back();
    }
    if (map.rows.size() == 1) map.columns.push_back(std::to_string(row.head.value()));
    map.values.back().push_back(row.change.value);
  }
  return {"change_by_head", title, "Each cell is the loss's change when that head's gates alone are replaced.",
          script_of(map)};
}

Plot change_by_layer(const Rows& ablations, const std::string& title) {
  LinePlot plot{
      .title = title, .x_label = "layer", .y_label = "loss, nats", .lines = {}, .zero_line = true, .whole_x = true};
  Line& line = plot.lines.emplace_back();
  line.title = "change";
  for (const AblationRow& row : ablations) add_point(line, static_cast<double>(row.layer.value()), row.change);
  return {"change_by_layer", title, "One layer's gates replaced at a time; the band is the bootstrap interval.",
          script_of(plot)};
}

Plot change_by_category(const Rows& ablations, const std::string& title) {
  BarPlot plot{.title = title, .y_label = "loss, nats", .names = {}, .values = {}, .low = {}, .high = {}};
  for (const AblationRow& row : ablations) add_bar(plot, row.category.value(), row.change);
  return {"change_by_category", title, "The gates of one group of tokens replaced at a time; bootstrap intervals.",
          script_of(plot)};
}

}  // namespace

std::vector<Plot> ablation_plots(const AblationReport& report) {
  const std::string title = fmt::format("Loss change, gates replaced: {}", rule_text(report.rule));
  std::vector<Plot> plots;
  if (report.scope == AblationScope::head) plots.push_back(change_map(report.ablations, title));
  if (report.scope == AblationScope::layer) plots.push_back(change_by_layer(report.ablations, title));
  if (report.scope == AblationScope::category) plots.push_back(change_by_category(report.ablations, title));
  std::erase_if(plots, [](const Plot& plot) { return plot.script.empty(); });
  return plots;
}

std::string ablation_table(const AblationReport& report) {
  CsvTable table({"rank", "layer", "head", "category", "loss", "perplexity", "change", "low", "high"});
  for (const AblationRow& row : report.ranked()) {
    std::vector<std::string> fields{csv_cell(row.rank),        csv_cell(row.layer), csv_cell(row.head),
                                    row.category.value_or(""), csv_cell(row.loss),  csv_cell(row.perplexity)};
    add_cells(fields, row.change);
    table.add(fields);
  }
  return table.take();
}

void write_ablation(const AblationReport& report, const std::filesystem::path& folder) {
  write_file_atomically(folder / "ablation.json", to_json(report).dump(1) + "\n");
  write_file_atomically(folder / "ablation.csv", ablation_table(report));
  const std::vector<Plot> plots = ablation_plots(report);
  if (!plots.empty()) draw_if_possible(plots, folder);
}

}  // namespace satformer::analysis
