#include "satformer/analysis/study/files.h"

#include "satformer/analysis/access/table.h"
#include "satformer/analysis/gates/tables.h"
#include "satformer/analysis/output/gnuplot.h"
#include "satformer/analysis/study/page.h"
#include "satformer/analysis/study/plots.h"
#include "satformer/io/files.h"

namespace satformer::analysis {

Tables report_tables(const GatesReport& report) {
  Tables tables;
  if (report.model.gates) add_gate_tables(*report.model.gates, tables);
  if (report.model.access) tables["access.csv"] = access_table(*report.model.access);
  std::vector<GatesAtStep> points;
  for (const GatesReport::Point& point : report.dynamics) {
    if (point.gates) points.emplace_back(point.step, &*point.gates);
  }
  if (!points.empty()) tables["dynamics.csv"] = heads_over_steps(points);
  return tables;
}

void write_report(const GatesReport& report, const std::filesystem::path& folder) {
  write_file_atomically(folder / "gates.json", to_json(report).dump(1) + "\n");
  for (const auto& [name, text] : report_tables(report)) write_file_atomically(folder / name, text);
  const std::vector<Plot> plots = report_plots(report);
  std::vector<std::string> svgs;
  if (draw_if_possible(plots, folder)) {
    for (const Plot& plot : plots) svgs.push_back(read_file(folder / "plots" / (plot.name + ".svg")));
  }
  write_file_atomically(folder / "report.html", report_html(report, plots, svgs));
}

}  // namespace satformer::analysis
