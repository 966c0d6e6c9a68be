#include "satformer/analysis/output/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace satformer::analysis {
namespace {

constexpr std::array<const char*, 6> kLineColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c6bb1"};
// Viridis by nine colours.
constexpr std::array<std::uint32_t, 9> kViridis{0x440154, 0x472c7a, 0x3b518b, 0x2c718e, 0x21908d,
                                                0x27ad81, 0x5cc863, 0xaadc32, 0xfde725};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMaxLabelledCells = 300;
constexpr std::size_t kMaxKeyLines = 12;

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.7g}", value) : "NaN"; }

// A colour of the scale; the last, lightest part is left out, so that lines can be seen on white.
std::string scale_colour(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(kViridis.size() - 2);
  const auto below = std::min(static_cast<std::size_t>(at), kViridis.size() - 2);
  const double part = at - static_cast<double>(below);
  std::string colour = "#";
  for (const int shift : {16, 8, 0}) {
    const auto channel = [shift](std::uint32_t rgb) { return static_cast<double>(rgb >> shift & 0xff); };
    const double mixed = channel(kViridis[below]) * (1.0 - part) + channel(kViridis[below + 1]) * part;
    colour += fmt::format("{:02x}", static_cast<unsigned>(std::lround(mixed)));
  }
  return colour;
}

std::string colour_of(const LinePlot& plot, std::size_t line) {
  if (!plot.ordered) return kLineColours[line % kLineColours.size()];
  return scale_colour(plot.lines.size() < 2 ? 0.0
                                            : static_cast<double>(line) / static_cast<double>(plot.lines.size() - 1));
}

std::string labels(const std::string& title, const std::string& x_label, const std::string& y_label) {
  return fmt::format("set title {}\nset xlabel {}\nset ylabel {}\n", quoted(title), quoted(x_label), quoted(y_label));
}

std::string tics(const char* axis, const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    list += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(names[i]), i);
  }
  return fmt::format("set {}tics ({})\n", axis, list);
}

bool has_values(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

bool is_band(const Line& line) {
  return line.low.size() == line.x.size() && line.high.size() == line.x.size() && has_values(line.low);
}

// A tic at every whole number, or at as many as there is room for.
std::string whole_tics(const LinePlot& plot) {
  double first = INFINITY, last = -INFINITY;
  for (const Line& line : plot.lines) {
    for (const double x : line.x) first = std::min(first, x), last = std::max(last, x);
  }
  return first <= last ? fmt::format("set xtics {}\n", std::max(1.0, std::ceil((last - first) / 16))) : "";
}

std::string line_block(std::size_t index, const Line& line) {
  std::string block = fmt::format("$line{} << EOD\n", index);
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    block += fmt::format("{} {}", number(line.x[i]), number(line.y[i]));
    if (is_band(line)) block += fmt::format(" {} {}", number(line.low[i]), number(line.high[i]));
    block += '\n';
  }
  return block + "EOD\n";
}

}  // namespace

std::string script_of(const LinePlot& plot) {
  std::string script = labels(plot.title, plot.x_label, plot.y_label), bands, lines;
  if (plot.log_x) script += "set logscale x 2\n";
  if (plot.log_y) script += "set logscale y 10\n";
  if (plot.whole_x) script += whole_tics(plot);
  script += plot.lines.size() > kMaxKeyLines ? "set key outside right font ',8'\n" : "set key outside right\n";
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const Line& line = plot.lines[i];
    if (!has_values(line.y)) continue;
    const std::string colour = colour_of(plot, i);
    script += line_block(i, line);
    if (is_band(line)) {
      bands += fmt::format(
          "$line{} using 1:3:4 with filledcurves fs transparent solid 0.2 noborder lc rgb '{}' "
          "notitle, ",
          i, colour);
    }
    lines += fmt::format("{}$line{} using 1:2 with {} lw 2 pt 7 ps 0.4 lc rgb '{}' {}title {}",
                         lines.empty() ? "" : ", ", i, line.x.size() > 60 ? "lines" : "linespoints", colour,
                         line.dashed ? "dt 2 " : "", quoted(line.title));
  }
  if (lines.empty()) return "";
  if (plot.zero_line)
    script +=
        "set yrange [*<0:0<*]\nset arrow from graph 0, first 0 to graph 1, first 0 nohead lc rgb '#888888' lw 0.8\n";
  return script + "plot " + bands + lines + "\n";
}

std::string script_of(const HeatMap& map) {
  double low = INFINITY, high = -INFINITY;
  std::string block = "$map << EOD\n";
  for (const std::vector<double>& row : map.values) {
    for (const double value : row) {
      if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
      block += fmt::format("{} ", number(value));
    }
    block += '\n';
  }
  block += "EOD\n";
  if (low > high) return "";
  if (low == high) high = low + 1.0;
  std::string script =
      labels(map.title, map.x_label, map.y_label) + tics("x", map.columns) + tics("y", map.rows) + block;
  script += "set palette defined (";
  for (std::size_t i = 0; i < kViridis.size(); ++i) {
    script += fmt::format("{}{} '#{:06x}'", i == 0 ? "" : ", ", i, kViridis[i]);
  }
  script += fmt::format(") maxcolors 64\nset cbrange [{}:{}]\nunset grid\nunset key\n", number(low), number(high));
  script +=
      fmt::format("set xrange [-0.5:{}.5]\nset yrange [-0.5:{}.5]\n", static_cast<std::int64_t>(map.columns.size()) - 1,
                  static_cast<std::int64_t>(map.rows.size()) - 1);
  script += "plot $map matrix with image pixels";
  if (map.columns.size() * map.rows.size() <= kMaxLabelledCells) {
    const std::string middle = number(low + 0.55 * (high - low));
    for (const auto& [sign, colour] : {std::pair{"<", "#ffffff"}, std::pair{">=", "#000001"}}) {
      script +=
          fmt::format(", $map matrix using 1:2:($3 {} {} ? sprintf('%.2g', $3) : '') with labels font ',8' tc rgb '{}'",
                      sign, middle, colour);
    }
  }
  return script + "\n";
}

std::string script_of(const BarPlot& plot) {
  if (!has_values(plot.values)) return "";
  std::string script = labels(plot.title, "", plot.y_label) + tics("x", plot.names) + "$bars << EOD\n";
  for (std::size_t i = 0; i < plot.values.size(); ++i) {
    script += fmt::format("{} {} {} {}\n", i, number(plot.values[i]), number(plot.low[i]), number(plot.high[i]));
  }
  return script +
         fmt::format(
             "EOD\nset xtics rotate by -35\nset yrange [*<0:0<*]\nset xrange [-0.7:{}.7]\nunset key\nset boxwidth 0.7\n"
             "plot $bars using 1:2 with boxes fs solid 0.75 noborder lc rgb '#0072b2', "
             "$bars using 1:2:3:4 with yerrorbars pt 0 lw 1.5 lc rgb '#444444'\n",
             static_cast<std::int64_t>(plot.values.size()) - 1);
}

void add_point(Line& line, double x, const Estimate& estimate) {
  line.x.push_back(x);
  line.y.push_back(estimate.value);
  line.low.push_back(estimate.interval ? estimate.interval->low : kNone);
  line.high.push_back(estimate.interval ? estimate.interval->high : kNone);
}

void add_bar(BarPlot& plot, const std::string& name, const Estimate& estimate) {
  plot.names.push_back(name);
  plot.values.push_back(estimate.value);
  plot.low.push_back(estimate.interval ? estimate.interval->low : kNone);
  plot.high.push_back(estimate.interval ? estimate.interval->high : kNone);
}

}  // namespace satformer::analysis
