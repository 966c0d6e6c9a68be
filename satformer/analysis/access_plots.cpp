// The plots of gate_plots.h for other architectures and over training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "satformer/analysis/gate_plots.h"

namespace satformer::analysis {
namespace {

using nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Plot readers_map(const json& readers) {
  HeatMap map{.title = "Mean weight of each source",
              .x_label = "source (0: embedding)",
              .y_label = "",
              .columns = {},
              .rows = {},
              .values = {}};
  std::int64_t sources = 0;
  for (const json& reader : readers) sources = std::max(sources, reader["sources"].back().get<std::int64_t>() + 1);
  for (std::int64_t s = 0; s < sources; ++s) map.columns.push_back(std::to_string(s));
  for (const json& reader : readers) {
    map.rows.push_back(reader["reader"].get<std::string>());
    std::vector<double>& row = map.values.emplace_back(static_cast<std::size_t>(sources), kNone);
    for (std::size_t i = 0; i < reader["sources"].size(); ++i) {
      row[reader["sources"][i].get<std::size_t>()] = plot_number(reader["weights"]["mean"][i]);
    }
  }
  return {"access_weights", map.title,
          "A row reads the depth; a column is the embedding or what a block or module put out.", script_of(map)};
}

Plot readers_profile(const json& readers) {
  LinePlot plot{.title = "Weight on early representations",
                .x_label = "reader, by depth",
                .y_label = "share",
                .lines = {{"share of all but the newest source", {}, {}}},
                .whole_x = true};
  for (std::size_t i = 0; i < readers.size(); ++i) {
    plot.lines[0].x.push_back(static_cast<double>(i));
    plot.lines[0].y.push_back(plot_number(readers[i]["early_share"]));
  }
  return {"access_depth", plot.title, "Of the sum of the weights' magnitudes.", script_of(plot)};
}

Plot lambdas(const json& layers) {
  LinePlot plot{.title = "Static value mix",
                .x_label = "layer",
                .y_label = "weight",
                .lines = {{"λ1 (first values)", {}, {}}, {"λ2 (own values)", {}, {}}},
                .zero_line = true,
                .whole_x = true};
  for (const json& layer : layers) {
    for (std::size_t i = 0; i < 2; ++i) {
      plot.lines[i].x.push_back(layer["layer"].get<double>());
      plot.lines[i].y.push_back(plot_number(layer[i == 0 ? "lambda1" : "lambda2"]));
    }
  }
  return {"lambdas", plot.title, "v' = λ1 v1 + λ2 v.", script_of(plot)};
}

Plot static_share(const json& layers) {
  HeatMap map{.title = "Share of the first values",
              .x_label = "KV head",
              .y_label = "layer",
              .columns = {},
              .rows = {},
              .values = {}};
  for (const json& layer : layers) {
    map.rows.push_back(layer["layer"].dump());
    std::vector<double>& row = map.values.emplace_back();
    for (const json& value : layer["first_share"]["mean"]) row.push_back(plot_number(value));
  }
  for (std::size_t i = 0; i < map.values.front().size(); ++i) map.columns.push_back(std::to_string(i));
  return {"first_share", map.title, "|λ1 v1| / (|λ1 v1| + |λ2 v|), mean over tokens.", script_of(map)};
}

// One line per row of a list (layers, readers) over the steps of the checkpoints.
Plot over_steps(const json& dynamics, const std::string& list, const std::string& path, const std::string& name,
                const std::string& title) {
  LinePlot plot{.title = title, .x_label = "step", .y_label = title, .lines = {}, .ordered = true};
  for (const json& point : dynamics) {
    const json& rows = point.at(json::json_pointer(list));
    plot.lines.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Line& line = plot.lines[i];
      line.title = rows[i].contains("reader") ? rows[i]["reader"].get<std::string>()
                                              : fmt::format("layer {}", rows[i]["layer"].get<int>());
      line.x.push_back(point["step"].get<double>());
      line.y.push_back(plot_number(rows[i].at(json::json_pointer(path))));
    }
  }
  return {name, title, "Over the checkpoints of the run; step 0 is the model at initialisation.", script_of(plot)};
}

}  // namespace

void add_access_plots(const json& document, std::vector<Plot>& plots) {
  const json& access = document["access"];
  if (access.is_null()) return;
  if (!access["layers"].empty()) {
    plots.push_back(lambdas(access["layers"]));
    plots.push_back(static_share(access["layers"]));
  }
  if (access["readers"].empty()) return;
  plots.push_back(readers_map(access["readers"]));
  plots.push_back(readers_profile(access["readers"]));
}

void add_dynamics_plots(const json& document, std::vector<Plot>& plots) {
  const json& dynamics = document["dynamics"];
  if (dynamics.is_null() || dynamics.empty()) return;
  const json& first = dynamics.front();
  if (!first["gates"].is_null()) {
    plots.push_back(over_steps(dynamics, "/gates/layers", "/mean", "dynamics_mean", "Mean gate over training"));
    plots.push_back(
        over_steps(dynamics, "/gates/layers", "/zero_fraction", "dynamics_zero", "Share of zero gates over training"));
    if (first["gates"]["categories"].is_null()) return;
    plots.push_back(over_steps(dynamics, "/gates/categories/layers", "/contrast/mean/value", "dynamics_contrast",
                               "Contrast of token groups over training"));
  } else if (!first["access"]["readers"].empty()) {
    plots.push_back(over_steps(dynamics, "/access/readers", "/early_share", "dynamics_early_share",
                               "Weight on early representations over training"));
  } else {
    plots.push_back(over_steps(dynamics, "/access/layers", "/lambda1", "dynamics_lambda1", "λ1 over training"));
  }
}

}  // namespace satformer::analysis
