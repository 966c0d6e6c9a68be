#include "satformer/analysis/study/page.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string_view>

#include "satformer/analysis/embedded.h"

namespace satformer::analysis {
namespace {

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// Nothing in it can end the script element that holds it.
std::string json_for_html(const nlohmann::json& document) {
  std::string result;
  for (const char c : document.dump()) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

// The <svg> element alone, with ids that no other picture of the page has.
std::string inline_svg(std::string svg, const Plot& plot) {
  svg.erase(0, svg.find("<svg"));
  const std::string prefix = plot.name + "-";
  for (const char* id : {"gp", "textbox", "greybox", "gnuplot_"}) {
    for (const char* before : {"id='", "id=\"", "'#", "\"#"}) {
      replace_all(svg, std::string(before) + id, before + prefix + id);
    }
  }
  replace_all(svg, "<title>Gnuplot</title>", "<title>" + html_escaped(plot.title) + "</title>");
  svg.insert(4, " role=\"img\" aria-label=\"" + html_escaped(plot.title) + "\"");
  return svg;
}

std::string figures(const std::vector<Plot>& plots, const std::vector<std::string>& svgs) {
  std::string html;
  for (std::size_t i = 0; i < plots.size() && i < svgs.size(); ++i) {
    html += fmt::format("<figure id=\"plot-{}\">{}<figcaption>{}</figcaption></figure>\n", plots[i].name,
                        inline_svg(svgs[i], plots[i]), html_escaped(plots[i].caption));
  }
  return html;
}

// Fills {{name}} in one pass, so that nothing inside a value is taken for a name.
std::string fill_template(std::string_view page, const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t open = page.find("{{", at), close = page.find("}}", open);
    result += page.substr(at, open - at);
    if (close == std::string_view::npos) break;
    result += values.find(page.substr(open + 2, close - open - 2))->second;
    at = close + 2;
  }
  return result;
}

std::string title_of(const GatesReport& report) {
  return fmt::format("{} of {}", report.model.gates ? "Gates" : "Access to depth", report.checkpoint.path);
}

}  // namespace

std::string report_html(const GatesReport& report, const std::vector<Plot>& plots,
                        const std::vector<std::string>& svgs) {
  std::string sentences;
  for (const std::string& finding : report.findings) sentences += "<li>" + html_escaped(finding) + "</li>\n";
  return fill_template(embedded::kReportTemplate, {{"title", html_escaped(title_of(report))},
                                                   {"style", std::string(embedded::kReportStyle)},
                                                   {"findings", sentences},
                                                   {"plots", figures(plots, svgs)},
                                                   {"version", report.version},
                                                   {"data", json_for_html(to_json(report))},
                                                   {"script", std::string(embedded::kReportScript)}});
}

}  // namespace satformer::analysis
