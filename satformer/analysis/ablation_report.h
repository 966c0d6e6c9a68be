#pragma once
// An ablation document (docs/ablation.md) as files: ablation.json, ablation.csv, plots/*.svg and *.png.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/analysis/plot.h"

namespace satformer::analysis {

// By scope: the loss's change as a heat map of layers and heads, a line over layers, bars of categories.
std::vector<Plot> ablation_plots(const nlohmann::json& document);

// One line an ablation, ranked: rank, layer, head, category, loss, perplexity, change, low, high.
std::string ablation_table(const nlohmann::json& document);

// What an ablation replaces, for a reader: "layer 3 head 1", "functional tokens", "all gates".
std::string ablation_name(const nlohmann::json& ablation);

// The ablations by rank.
std::vector<nlohmann::json> ranked(const nlohmann::json& document);

// What breaks: the sentence that ends the command's output.
std::string ablation_finding(const nlohmann::json& document);

// Writes everything into an existing folder. Without gnuplot there are no plots, and a warning says so.
void write_ablation(const nlohmann::json& document, const std::filesystem::path& folder);

}  // namespace satformer::analysis
