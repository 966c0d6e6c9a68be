#pragma once
// Plots as data, and gnuplot's commands for them. Values that do not exist are NaN.
#include <string>
#include <vector>

#include "satformer/analysis/statistics/bootstrap.h"

namespace satformer::analysis {

struct Line {
  std::string title;
  std::vector<double> x, y;
  std::vector<double> low = {}, high = {};  // a band around y; empty: none
  bool dashed = false;
};

struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<Line> lines;
  bool log_x = false, log_y = false;
  bool ordered = false;  // the lines' order means something: their colours run along a scale
  bool zero_line = false;
  bool whole_x = false;  // x counts something: layers
};

struct HeatMap {
  std::string title, x_label, y_label;
  std::vector<std::string> columns, rows;
  std::vector<std::vector<double>> values;  // [row][column]
};

struct BarPlot {
  std::string title, y_label;
  std::vector<std::string> names;
  std::vector<double> values, low, high;
};

// A plot's file name without extension, what a reader is told of it, and gnuplot's commands for it.
struct Plot {
  std::string name, title, caption, script;
};

// Empty when there is no value to draw; a line without values is left out.
std::string script_of(const LinePlot& plot);
std::string script_of(const HeatMap& map);
std::string script_of(const BarPlot& plot);

// A point of a line, a bar: the value, and the interval where there is one.
void add_point(Line& line, double x, const Estimate& estimate);
void add_bar(BarPlot& plot, const std::string& name, const Estimate& estimate);

}  // namespace satformer::analysis
