#pragma once
// The plots of a gates document (docs/gates.md): what of it is there decides which.
#include <nlohmann/json.hpp>
#include <vector>

#include "satformer/analysis/plot.h"

namespace satformer::analysis {

std::vector<Plot> gate_plots(const nlohmann::json& document);

// Of the other architectures' access, and over the steps of training; gate_plots includes them.
void add_access_plots(const nlohmann::json& document, std::vector<Plot>& plots);
void add_dynamics_plots(const nlohmann::json& document, std::vector<Plot>& plots);

// A number of a document; NaN for null.
double plot_number(const nlohmann::json& value);

}  // namespace satformer::analysis
