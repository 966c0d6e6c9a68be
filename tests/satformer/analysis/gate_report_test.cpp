#include "satformer/analysis/gate_report.h"

#include <algorithm>
#include <limits>

#include "satformer/analysis/gate_csv.h"
#include "satformer/analysis/gate_plots.h"
#include "satformer/analysis/study.h"
#include "satformer/core/error.h"
#include "tests/satformer/analysis/support.h"
#include "tests/satformer/data/support.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;
using Catch::Matchers::Contains;
using nlohmann::json;

json document_of(const std::vector<std::string>& overrides) {
  const TinyStudy study(overrides);
  json result = study_model(*study.model, study.stream(), {.gates = {.gates = {}, .text_tokens = 30}, .json = {}},
                            StudyParts::all);
  const json point = for_dynamics(result);
  json points = json::array({point, point});
  points[0].update({{"step", 0}, {"tokens", 0}});
  points[1].update({{"step", 10}, {"tokens", 640}});
  return {{"schema", "satformer.gates/1"},
          {"satformer", "0"},
          {"checkpoint", {{"path", "runs/<x>"}, {"step", 10}, {"architecture", study.model->config().architecture}}},
          {"data", {{"name", "d"}, {"tokens", 499}, {"windows", 32}, {"seq_length", 16}, {"dtype", "float32"}}},
          {"gates", result["gates"]},
          {"access", result["access"]},
          {"initialization", {{"seed", 1}, {"gates", result["gates"]}, {"access", result["access"]}}},
          {"dynamics", points}};
}

std::vector<std::string> names_of(const std::vector<Plot>& plots) {
  std::vector<std::string> names;
  for (const Plot& plot : plots) names.push_back(plot.name);
  return names;
}

std::ptrdiff_t lines_in(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// The text between the two, which must be there.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin), to = text.find(end, from);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  return text.substr(from + begin.size(), to - from - begin.size());
}

}  // namespace

TEST_CASE("the page holds the document, whatever its texts are", "[analysis]") {
  json document = document_of({});
  document["gates"]["text"]["pieces"][0] = "</script><!-- \"'& \xe2\x96\x81{{title}}";
  const std::string page = report_html(document, {}, {});
  const std::string data = between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  CHECK(json::parse(data) == document);
  CHECK_THAT(page, Contains("<h1>Gates of runs/&lt;x&gt;</h1>"));
  CHECK(page.find("{{title}}", page.find("{{title}}") + 1) == std::string::npos);  // only the piece's own
  for (const char* foreign : {"http://", "https://", "src=", "@import", "url("}) {
    INFO(foreign);
    CHECK(page.find(foreign) == std::string::npos);  // nothing comes from a network
  }
}

TEST_CASE("the tables have a line for each thing told", "[analysis]") {
  const json document = document_of({});
  const auto tables = gate_tables(document);
  CHECK(lines_in(tables.at("heads.csv")) == 1 + 4);
  CHECK(lines_in(tables.at("layers.csv")) == 1 + 2);
  CHECK(lines_in(tables.at("dynamics.csv")) == 1 + 2 * 4);
  CHECK(lines_in(tables.at("positions.csv")) == 1 + 4 * 5);
  CHECK_THAT(tables.at("heads.csv"), Contains("layer,head,values,mean,std,"));
  CHECK_THAT(tables.at("heads.csv"), Contains("below_0.01,below_0.1,below_0.5"));
  CHECK_THAT(tables.at("heads.csv"), Contains("\r\n2,1,499," + document["gates"]["heads"][3]["mean"].dump()));
  CHECK(tables.count("access.csv") == 0);
}

TEST_CASE("a field of a table is quoted where it must be", "[analysis]") {
  json document = document_of({});
  json& token = document["gates"]["tokens"]["heads"][0]["top"][0];
  token["piece"] = "a\"b,\n";
  CHECK_THAT(gate_tables(document).at("tokens.csv"), Contains(",\"a\"\"b,\n\","));
}

TEST_CASE("each kind of document has its plots, and gnuplot draws them", "[analysis]") {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> kinds{
      {{},
       {"heads_mean", "heads_open", "depth_mean", "depth_zero", "histograms", "positions", "dynamics_mean",
        "dynamics_zero"}},
      {{"model.architecture=\"resformer\""}, {"lambdas", "first_share", "dynamics_lambda1"}},
      {{"model.architecture=\"denseformer\""}, {"access_weights", "access_depth", "dynamics_early_share"}},
      {{"model.architecture=\"muddformer\""}, {"access_weights"}},  // weights of zero have no early share
      {{"model.architecture=\"muddformer\"", "use_pre_post_da_norm=false"},
       {"access_weights", "access_depth", "dynamics_early_share"}},
      {{"model.architecture=\"hyperconnections\""}, {"access_weights", "access_depth", "dynamics_early_share"}},
  };
  for (const auto& [overrides, names] : kinds) {
    const json document = document_of(overrides);
    CHECK(names_of(gate_plots(document)) == names);
    const testing::TemporaryFolder folder;
    if (!have_gnuplot()) {
      WARN("gnuplot was not found: nothing drawn");
      continue;
    }
    write_report(document, folder.path());
    for (const std::string& name : names) {
      CHECK_THAT(testing::read_text(folder / ("plots/" + name + ".svg")), Contains("</svg>"));
      CHECK_THAT(testing::read_text(folder / ("plots/" + name + ".png")), Contains("PNG") && Contains("IEND"));
    }
    CHECK_FALSE(std::filesystem::exists(folder / "plots/plots.gnuplot"));
    const std::string page = testing::read_text(folder / "report.html");
    for (const std::string& name : names)
      CHECK_THAT(page, Contains("<figure id=\"plot-" + name + "\"><svg role=\"img\""));
    CHECK(page.find("id='gp") == std::string::npos);  // ids of one picture only
    CHECK(json::parse(testing::read_text(folder / "gates.json")) == document);
    CHECK(findings(document).size() >= 1);
  }
}

TEST_CASE("gnuplot's refusal is told in its own words", "[analysis]") {
  if (!have_gnuplot()) return;
  const testing::TemporaryFolder folder;
  CHECK_THROWS_WITH(draw({{"bad", "Bad", "", "plot nonsense nonsense\n"}}, folder.path()),
                    Contains("gnuplot could not draw bad.svg") && Contains("nonsense"));
}

TEST_CASE("plots without values are left out, with few they are drawn", "[analysis]") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(script_of(LinePlot{.title = "", .x_label = "", .y_label = "", .lines = {{"a", {1, 2}, {none, none}}}}).empty());
  CHECK(
      script_of(HeatMap{.title = "", .x_label = "", .y_label = "", .columns = {"0"}, .rows = {"0"}, .values = {{none}}})
          .empty());
  CHECK(script_of(BarPlot{.title = "", .y_label = "", .names = {"a"}, .values = {none}, .low = {none}, .high = {none}})
            .empty());
  if (!have_gnuplot()) return;
  const testing::TemporaryFolder folder;
  const LinePlot lines{
      .title = "It's", .x_label = "x_1", .y_label = "", .lines = {{"a'b", {1, 2}, {none, 1}, {0, 0}, {1, 2}}}};
  const HeatMap one{.title = "", .x_label = "", .y_label = "", .columns = {"0"}, .rows = {"0"}, .values = {{0.0}}};
  const HeatMap gaps{
      .title = "", .x_label = "", .y_label = "", .columns = {"0", "1"}, .rows = {"0"}, .values = {{none, 1}}};
  const BarPlot bars{
      .title = "", .y_label = "", .names = {"a", "b"}, .values = {1, none}, .low = {none, none}, .high = {none, none}};
  CHECK_NOTHROW(draw({{"lines", "", "", script_of(lines)},
                      {"one", "", "", script_of(one)},
                      {"gaps", "", "", script_of(gaps)},
                      {"bars", "", "", script_of(bars)}},
                     folder.path()));
}
