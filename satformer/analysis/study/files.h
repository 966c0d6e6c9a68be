#pragma once
// A report as a folder for people and programs:
//   gates.json, *.csv, plots/*.svg and *.png, report.html (one file that works without a network)
#include <filesystem>

#include "satformer/analysis/output/csv.h"
#include "satformer/analysis/study/report.h"

namespace satformer::analysis {

// The tables that the report has numbers for. docs/gates.md lists their columns.
Tables report_tables(const GatesReport& report);

// Writes everything into an existing folder. Without gnuplot there are no plots, and a warning says so.
void write_report(const GatesReport& report, const std::filesystem::path& folder);

}  // namespace satformer::analysis
