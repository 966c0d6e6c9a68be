#pragma once
// A gates document (docs/gates.md) as a folder for people and programs:
//   gates.json, *.csv, plots/*.svg and *.png, report.html (one file that works without a network)
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/analysis/plot.h"

namespace satformer::analysis {

// How sparse, where, for which tokens: the sentences that open the report.
std::vector<std::string> findings(const nlohmann::json& document);

// The page; `svgs` are the plots' pictures, in their order (fewer or none: those plots are left out).
std::string report_html(const nlohmann::json& document, const std::vector<Plot>& plots,
                        const std::vector<std::string>& svgs);

// Writes everything into an existing folder. Without gnuplot there are no plots, and a warning says so.
void write_report(const nlohmann::json& document, const std::filesystem::path& folder);

}  // namespace satformer::analysis
