#include "satformer/analysis/access/plots.h"

#include <algorithm>
#include <limits>
#include <string>

namespace satformer::analysis {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Plot readers_map(const std::vector<ReaderSummary>& readers) {
  HeatMap map{.title = "Mean weight of each source",
              .x_label = "source (0: embedding)",
              .y_label = "",
              .columns = {},
              .rows = {},
              .values = {}};
  std::int64_t sources = 0;
  for (const ReaderSummary& reader : readers) sources = std::max(sources, reader.sources.back() + 1);
  for (std::int64_t s = 0; s < sources; ++s) map.columns.push_back(std::to_string(s));
  for (const ReaderSummary& reader : readers) {
    map.rows.push_back(reader.name);
    std::vector<double>& row = map.values.emplace_back(static_cast<std::size_t>(sources), kNone);
    for (std::size_t i = 0; i < reader.sources.size(); ++i) {
      row[static_cast<std::size_t>(reader.sources[i])] = reader.weights.means[i];
    }
  }
  return {"access_weights", map.title,
          "A row reads the depth; a column is the embedding or what a block or module put out.", script_of(map)};
}

Plot readers_profile(const std::vector<ReaderSummary>& readers) {
  Line line{.title = "share of all but the newest source", .x = {}, .y = {}};
  for (const ReaderSummary& reader : readers) {
    line.x.push_back(static_cast<double>(line.x.size()));
    line.y.push_back(reader.early_share);
  }
  const LinePlot plot{.title = "Weight on early representations",
                      .x_label = "reader, by depth",
                      .y_label = "share",
                      .lines = {line},
                      .whole_x = true};
  return {"access_depth", plot.title, "Of the sum of the weights' magnitudes.", script_of(plot)};
}

Plot lambdas(const std::vector<StaticSummary>& layers) {
  Line first{.title = "λ1 (first values)", .x = {}, .y = {}}, own{.title = "λ2 (own values)", .x = {}, .y = {}};
  for (const StaticSummary& layer : layers) {
    first.x.push_back(static_cast<double>(layer.layer));
    first.y.push_back(layer.lambda1);
    own.y.push_back(layer.lambda2);
  }
  own.x = first.x;
  const LinePlot plot{.title = "Static value mix",
                      .x_label = "layer",
                      .y_label = "weight",
                      .lines = {first, own},
                      .zero_line = true,
                      .whole_x = true};
  return {"lambdas", plot.title, "v' = λ1 v1 + λ2 v.", script_of(plot)};
}

Plot static_share(const std::vector<StaticSummary>& layers) {
  HeatMap map{.title = "Share of the first values",
              .x_label = "KV head",
              .y_label = "layer",
              .columns = {},
              .rows = {},
              .values = {}};
  for (const StaticSummary& layer : layers) {
    map.rows.push_back(std::to_string(layer.layer));
    map.values.push_back(layer.first_share.means);
  }
  for (std::size_t i = 0; i < map.values.front().size(); ++i) map.columns.push_back(std::to_string(i));
  return {"first_share", map.title, "|λ1 v1| / (|λ1 v1| + |λ2 v|), mean over tokens.", script_of(map)};
}

}  // namespace

void add_access_plots(const AccessSummary& access, std::vector<Plot>& plots) {
  if (!access.layers.empty()) {
    plots.push_back(lambdas(access.layers));
    plots.push_back(static_share(access.layers));
  }
  if (access.readers.empty()) return;
  plots.push_back(readers_map(access.readers));
  plots.push_back(readers_profile(access.readers));
}

}  // namespace satformer::analysis
