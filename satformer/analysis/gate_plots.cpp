#include "satformer/analysis/gate_plots.h"

#include <fmt/format.h>

#include <limits>
#include <set>

namespace satformer::analysis {
namespace {

using nlohmann::json;

std::vector<double> column(const json& rows, const json::json_pointer& pointer) {
  std::vector<double> values;
  for (const json& row : rows) values.push_back(plot_number(row.at(pointer)));
  return values;
}

std::vector<double> column(const json& rows, const char* key) {
  return column(rows, json::json_pointer(fmt::format("/{}", key)));
}

std::string layer_name(const json& row) { return fmt::format("layer {}", row.at("layer").get<int>()); }

Plot heads_map(const json& gates, const char* key, const std::string& name, const std::string& title) {
  HeatMap map{.title = title, .x_label = "KV head", .y_label = "layer", .columns = {}, .rows = {}, .values = {}};
  for (const json& layer : gates["layers"]) {
    map.rows.push_back(layer["layer"].dump());
    std::vector<double>& values = map.values.emplace_back();
    for (const json& head : gates["heads"]) {
      if (head["layer"] == layer["layer"]) values.push_back(plot_number(head[key]));
    }
  }
  for (std::size_t i = 0; !map.values.empty() && i < map.values.front().size(); ++i) {
    map.columns.push_back(std::to_string(i));
  }
  return {name, title, "Each cell is a KV head of a layer.", script_of(map)};
}

const json* initial_gates(const json& document) {
  const json& initial = document["initialization"];
  return initial.is_null() || initial["gates"].is_null() ? nullptr : &initial["gates"];
}

Plot depth_profile(const json& document, const char* key, const std::string& name, const std::string& title) {
  LinePlot plot{.title = title, .x_label = "layer", .y_label = title, .lines = {}, .whole_x = true};
  const json& layers = document["gates"]["layers"];
  plot.lines.push_back({"trained", column(layers, "layer"), column(layers, key)});
  std::string caption = "All heads of a layer together.";
  if (const json* initial = initial_gates(document)) {
    const json& before = (*initial)["layers"];
    plot.lines.push_back(
        {.title = "at initialisation", .x = column(before, "layer"), .y = column(before, key), .dashed = true});
    caption += " Dashed: the same model before training, over the same tokens.";
  }
  return {name, title, caption, script_of(plot)};
}

Plot category_bars(const json& categories) {
  BarPlot plot{
      .title = "Mean gate by token class", .y_label = "mean gate", .names = {}, .values = {}, .low = {}, .high = {}};
  for (const json& item : categories["classes"]) {
    if (item["tokens"] == 0) continue;
    const auto name = item["name"].get<std::string>();
    const json& mean = categories["model"]["classes"][name]["mean"];
    plot.names.push_back(name);
    plot.values.push_back(plot_number(mean["value"]));
    plot.low.push_back(plot_number(mean["low"]));
    plot.high.push_back(plot_number(mean["high"]));
  }
  return {"categories", plot.title, "All layers and heads together; the lines are bootstrap intervals.",
          script_of(plot)};
}

Line estimate_line(const std::string& title, const json& layers, const std::string& path) {
  const auto part = [&](const char* key) { return column(layers, json::json_pointer(path + "/" + key)); };
  return {title, column(layers, "layer"), part("value"), part("low"), part("high")};
}

void add_category_plots(const json& categories, std::vector<Plot>& plots) {
  plots.push_back(category_bars(categories));
  const json& layers = categories["layers"];
  LinePlot groups{
      .title = "Mean gate by token group", .x_label = "layer", .y_label = "mean gate", .lines = {}, .whole_x = true};
  std::set<std::string> names;
  for (const json& item : categories["classes"]) {
    if (item["tokens"] != 0) names.insert(item["group"].get<std::string>());
  }
  for (const std::string& name : names) {
    groups.lines.push_back(estimate_line(name, layers, fmt::format("/groups/{}/mean", name)));
  }
  plots.push_back({"category_depth", groups.title, "Bands are bootstrap intervals.", script_of(groups)});
  const std::string title = fmt::format("Mean gate, {} minus {}", categories["contrast"][0].get<std::string>(),
                                        categories["contrast"][1].get<std::string>());
  LinePlot contrast{
      .title = title, .x_label = "layer", .y_label = "difference", .lines = {}, .zero_line = true, .whole_x = true};
  contrast.lines.push_back(estimate_line("difference", layers, "/contrast/mean"));
  plots.push_back({"contrast", title, "The band is the bootstrap interval of the difference.", script_of(contrast)});
}

Plot histograms(const json& histogram) {
  LinePlot plot{.title = "Distribution of the gates that are not zero",
                .x_label = "gate",
                .y_label = "density",
                .lines = {},
                .log_y = true,
                .ordered = true};
  const auto edges = histogram["edges"].get<std::vector<double>>();
  for (const json& layer : histogram["layers"]) {
    const auto counts = layer["counts"].get<std::vector<double>>();
    double all = layer["zeros"].get<double>();
    for (const double count : counts) all += count;
    Line line{.title = layer_name(layer), .x = {}, .y = {}};
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      const double density = counts[i + 1] / (all * (edges[i + 1] - edges[i]));
      line.x.push_back((edges[i] + edges[i + 1]) / 2);
      line.y.push_back(density > 0 ? density : std::numeric_limits<double>::quiet_NaN());
    }
    plot.lines.push_back(std::move(line));
  }
  return {"histograms", plot.title,
          "All heads of a layer together; exact zeros count for the density but are not drawn.", script_of(plot)};
}

Plot position_profile(const json& positions) {
  LinePlot plot{.title = "Mean gate by position",
                .x_label = "position in the window (from 1)",
                .y_label = "mean gate",
                .lines = {},
                .log_x = true,
                .ordered = true};
  for (const json& layer : positions["layers"]) {
    Line line{.title = layer_name(layer), .x = {}, .y = {}};
    for (std::size_t i = 0; i < positions["from"].size(); ++i) {
      line.x.push_back(positions["from"][i].get<double>() + 1.0);
      line.y.push_back(plot_number(layer["mean"][i]));
    }
    plot.lines.push_back(std::move(line));
  }
  return {"positions", plot.title, "A point is the mean from its position to the next point's.", script_of(plot)};
}

}  // namespace

double plot_number(const json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Plot> gate_plots(const json& document) {
  std::vector<Plot> plots;
  const json& gates = document["gates"];
  if (!gates.is_null()) {
    plots.push_back(heads_map(gates, "mean", "heads_mean", "Mean gate"));
    plots.push_back(heads_map(gates, "open_share", "heads_open", "Share of tokens with an open gate"));
    plots.push_back(depth_profile(document, "mean", "depth_mean", "Mean gate by layer"));
    plots.push_back(depth_profile(document, "zero_fraction", "depth_zero", "Share of gates that are exactly zero"));
    if (!gates["categories"].is_null()) add_category_plots(gates["categories"], plots);
    plots.push_back(histograms(gates["histogram"]));
    plots.push_back(position_profile(gates["positions"]));
  }
  add_access_plots(document, plots);
  add_dynamics_plots(document, plots);
  std::erase_if(plots, [](const Plot& plot) { return plot.script.empty(); });
  return plots;
}

}  // namespace satformer::analysis
