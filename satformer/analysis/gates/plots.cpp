#include "satformer/analysis/gates/plots.h"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <string>
#include <utility>

namespace satformer::analysis {
namespace {

Plot heads_map(const GateSummary& gates, double SeriesSummary::* number, const std::string& name,
               const std::string& title) {
  HeatMap map{.title = title, .x_label = "KV head", .y_label = "layer", .columns = {}, .rows = {}, .values = {}};
  for (const auto& layer : gates.layers) {
    map.rows.push_back(std::to_string(layer.layer));
    std::vector<double>& values = map.values.emplace_back();
    for (const auto& head : gates.heads) {
      if (head.layer == layer.layer) values.push_back(head.*number);
    }
  }
  for (std::size_t i = 0; !map.values.empty() && i < map.values.front().size(); ++i) {
    map.columns.push_back(std::to_string(i));
  }
  return {name, title, "Each cell is a KV head of a layer.", script_of(map)};
}

Line over_layers(const std::string& title, const GateSummary& gates, double SeriesSummary::* number) {
  Line line{.title = title, .x = {}, .y = {}};
  for (const auto& layer : gates.layers) {
    line.x.push_back(static_cast<double>(layer.layer));
    line.y.push_back(layer.*number);
  }
  return line;
}

Plot depth_profile(const GateSummary& gates, const GateSummary* initial, double SeriesSummary::* number,
                   const std::string& name, const std::string& title) {
  LinePlot plot{.title = title, .x_label = "layer", .y_label = title, .lines = {}, .whole_x = true};
  plot.lines.push_back(over_layers("trained", gates, number));
  std::string caption = "All heads of a layer together.";
  if (initial != nullptr) {
    plot.lines.push_back(over_layers("at initialisation", *initial, number));
    plot.lines.back().dashed = true;
    caption += " Dashed: the same model before training, over the same tokens.";
  }
  return {name, title, caption, script_of(plot)};
}

Plot category_bars(const CategorySummary& categories) {
  BarPlot plot{
      .title = "Mean gate by token class", .y_label = "mean gate", .names = {}, .values = {}, .low = {}, .high = {}};
  for (const CountedClass& one : categories.classes) {
    if (one.tokens > 0) add_bar(plot, one.name, categories.model.classes.at(one.name).mean);
  }
  return {"categories", plot.title, "All layers and heads together; the lines are bootstrap intervals.",
          script_of(plot)};
}

// `estimate_of(layer)` for each layer, with its band.
template <typename EstimateOf>
Line estimate_line(const std::string& title, const CategorySummary& categories, EstimateOf estimate_of) {
  Line line{.title = title, .x = {}, .y = {}};
  for (const auto& layer : categories.layers) add_point(line, static_cast<double>(layer.layer), estimate_of(layer));
  return line;
}

Plot category_depth(const CategorySummary& categories) {
  LinePlot plot{
      .title = "Mean gate by token group", .x_label = "layer", .y_label = "mean gate", .lines = {}, .whole_x = true};
  std::set<std::string> names;
  for (const CountedClass& one : categories.classes) {
    if (one.tokens > 0) names.insert(one.group);
  }
  for (const std::string& name : names) {
    plot.lines.push_back(
        estimate_line(name, categories, [&](const CategoryEstimates& layer) { return layer.groups.at(name).mean; }));
  }
  return {"category_depth", plot.title, "Bands are bootstrap intervals.", script_of(plot)};
}

Plot contrast_depth(const CategorySummary& categories) {
  const std::string title =
      fmt::format("Mean gate, {} minus {}", categories.contrast.first, categories.contrast.second);
  LinePlot plot{
      .title = title, .x_label = "layer", .y_label = "difference", .lines = {}, .zero_line = true, .whole_x = true};
  plot.lines.push_back(
      estimate_line("difference", categories, [](const CategoryEstimates& layer) { return layer.contrast.mean; }));
  return {"contrast", title, "The band is the bootstrap interval of the difference.", script_of(plot)};
}

Plot histograms(const HistogramSummary& histogram) {
  LinePlot plot{.title = "Distribution of the gates that are not zero",
                .x_label = "gate",
                .y_label = "density",
                .lines = {},
                .log_y = true,
                .ordered = true};
  const std::vector<double>& edges = histogram.edges;
  for (const auto& layer : histogram.layers) {
    auto all = static_cast<double>(layer.zeros);
    for (const std::int64_t count : layer.counts) all += static_cast<double>(count);
    Line line{.title = fmt::format("layer {}", layer.layer), .x = {}, .y = {}};
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      const double density = static_cast<double>(layer.counts[i + 1]) / (all * (edges[i + 1] - edges[i]));
      line.x.push_back((edges[i] + edges[i + 1]) / 2);
      line.y.push_back(density > 0 ? density : std::numeric_limits<double>::quiet_NaN());
    }
    plot.lines.push_back(std::move(line));
  }
  return {"histograms", plot.title,
          "All heads of a layer together; exact zeros count for the density but are not drawn.", script_of(plot)};
}

Plot position_profile(const PositionSummary& positions) {
  LinePlot plot{.title = "Mean gate by position",
                .x_label = "position in the window (from 1)",
                .y_label = "mean gate",
                .lines = {},
                .log_x = true,
                .ordered = true};
  for (const auto& layer : positions.layers) {
    Line line{.title = fmt::format("layer {}", layer.layer), .x = {}, .y = layer.means};
    for (const std::int64_t from : positions.from) line.x.push_back(static_cast<double>(from) + 1.0);
    plot.lines.push_back(std::move(line));
  }
  return {"positions", plot.title, "A point is the mean from its position to the next point's.", script_of(plot)};
}

}  // namespace

void add_gate_plots(const GateSummary& gates, const GateSummary* initial, std::vector<Plot>& plots) {
  plots.push_back(heads_map(gates, &SeriesSummary::mean, "heads_mean", "Mean gate"));
  plots.push_back(heads_map(gates, &SeriesSummary::open_share, "heads_open", "Share of tokens with an open gate"));
  plots.push_back(depth_profile(gates, initial, &SeriesSummary::mean, "depth_mean", "Mean gate by layer"));
  plots.push_back(depth_profile(gates, initial, &SeriesSummary::zero_fraction, "depth_zero",
                                "Share of gates that are exactly zero"));
  if (gates.categories) {
    plots.push_back(category_bars(*gates.categories));
    plots.push_back(category_depth(*gates.categories));
    plots.push_back(contrast_depth(*gates.categories));
  }
  if (gates.details) plots.push_back(histograms(gates.details->histogram));
  if (gates.positions) plots.push_back(position_profile(*gates.positions));
}

}  // namespace satformer::analysis
