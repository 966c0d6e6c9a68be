#pragma once
// Draws plots with the program gnuplot.
#include <filesystem>
#include <vector>

#include "satformer/analysis/output/plot.h"

namespace satformer::analysis {

// Whether the program gnuplot can be started.
bool have_gnuplot();

// Draws NAME.svg and NAME.png of each plot into `folder`. Error with gnuplot's own words.
void draw(const std::vector<Plot>& plots, const std::filesystem::path& folder);

// Draws into the folder `plots` of `folder`; without gnuplot warns and returns false.
bool draw_if_possible(const std::vector<Plot>& plots, const std::filesystem::path& folder);

}  // namespace satformer::analysis
