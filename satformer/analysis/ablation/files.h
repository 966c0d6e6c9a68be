#pragma once
// An ablation's report as files: ablation.json, ablation.csv, plots/*.svg and *.png.
#include <filesystem>
#include <string>
#include <vector>

#include "satformer/analysis/ablation/report.h"
#include "satformer/analysis/output/plot.h"

namespace satformer::analysis {

// By scope: the loss's change as a heat map of layers and heads, a line over layers, bars of categories.
std::vector<Plot> ablation_plots(const AblationReport& report);

// One line an ablation, ranked: rank, layer, head, category, loss, perplexity, change, low, high.
std::string ablation_table(const AblationReport& report);

// Writes everything into an existing folder. Without gnuplot there are no plots, and a warning says so.
void write_ablation(const AblationReport& report, const std::filesystem::path& folder);

}  // namespace satformer::analysis
