#include "satformer/analysis/study/plots.h"

#include <fmt/format.h>

#include <string>

#include "satformer/analysis/access/plots.h"
#include "satformer/analysis/gates/plots.h"

namespace satformer::analysis {
namespace {

std::string name_of(const ReaderSummary& reader) { return reader.name; }

template <typename Layer>
std::string name_of(const Layer& layer) {
  return fmt::format("layer {}", layer.layer);
}

// A line for each row that `rows_of` a point has, over the steps: `number_of` the row.
template <typename RowsOf, typename NumberOf>
Plot over_steps(const std::vector<GatesReport::Point>& points, const std::string& name, const std::string& title,
                RowsOf rows_of, NumberOf number_of) {
  LinePlot plot{.title = title, .x_label = "step", .y_label = title, .lines = {}, .ordered = true};
  for (const GatesReport::Point& point : points) {
    const auto& rows = rows_of(point);
    plot.lines.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      plot.lines[i].title = name_of(rows[i]);
      plot.lines[i].x.push_back(static_cast<double>(point.step));
      plot.lines[i].y.push_back(number_of(rows[i]));
    }
  }
  return {name, title, "Over the checkpoints of the run; step 0 is the model at initialisation.", script_of(plot)};
}

void add_gates_over_steps(const std::vector<GatesReport::Point>& points, std::vector<Plot>& plots) {
  const auto layers = [](const ModelStudy& study) -> const auto& { return study.gates->layers; };
  plots.push_back(over_steps(points, "dynamics_mean", "Mean gate over training", layers,
                             [](const SeriesSummary& layer) { return layer.mean; }));
  plots.push_back(over_steps(points, "dynamics_zero", "Share of zero gates over training", layers,
                             [](const SeriesSummary& layer) { return layer.zero_fraction; }));
  if (!points.front().gates->categories) return;
  plots.push_back(over_steps(
      points, "dynamics_contrast", "Contrast of token groups over training",
      [](const ModelStudy& study) -> const auto& { return study.gates->categories->layers; },
      [](const CategoryEstimates& layer) { return layer.contrast.mean.value; }));
}

void add_access_over_steps(const std::vector<GatesReport::Point>& points, std::vector<Plot>& plots) {
  if (!points.front().access->readers.empty()) {
    plots.push_back(over_steps(
        points, "dynamics_early_share", "Weight on early representations over training",
        [](const ModelStudy& study) -> const auto& { return study.access->readers; },
        [](const ReaderSummary& reader) { return reader.early_share; }));
  } else {
    plots.push_back(over_steps(
        points, "dynamics_lambda1", "λ1 over training",
        [](const ModelStudy& study) -> const auto& { return study.access->layers; },
        [](const StaticSummary& layer) { return layer.lambda1; }));
  }
}

}  // namespace

std::vector<Plot> report_plots(const GatesReport& report) {
  std::vector<Plot> plots;
  if (report.model.gates) add_gate_plots(*report.model.gates, report.initial_gates(), plots);
  if (report.model.access) add_access_plots(*report.model.access, plots);
  if (!report.dynamics.empty() && report.model.gates) add_gates_over_steps(report.dynamics, plots);
  if (!report.dynamics.empty() && report.model.access) add_access_over_steps(report.dynamics, plots);
  std::erase_if(plots, [](const Plot& plot) { return plot.script.empty(); });
  return plots;
}

}  // namespace satformer::analysis
