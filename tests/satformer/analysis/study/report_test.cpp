#include "satformer/analysis/study/report.h"

#include <algorithm>

#include "satformer/analysis/output/gnuplot.h"
#include "satformer/analysis/study/files.h"
#include "satformer/analysis/study/page.h"
#include "satformer/analysis/study/plots.h"
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

GatesReport report_of(const std::vector<std::string>& overrides) {
  const TinyStudy study(overrides);
  GatesReport report;
  report.version = "0";
  report.checkpoint = {.path = "runs/<x>",
                       .architecture = study.model->config().architecture,
                       .num_parameters = 1,
                       .config = nullptr,
                       .step = 10,
                       .tokens = 640};
  report.data = {.name = "d", .tokens = 499, .windows = 32, .seq_length = 16, .dtype = "float32"};
  report.model = study_model(*study.model, study.stream(), {.gates = {.gates = {}, .text_tokens = 30}, .summary = {}},
                             StudyParts::all);
  report.initialization = {report.model, 1, true};
  report.dynamics = {point_of(report.model, 0, 0), point_of(report.model, 10, 640)};
  report.findings = findings_of(report);
  return report;
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
  GatesReport report = report_of({});
  report.model.gates->details->text.pieces[0] = "</script><!-- \"'& \xe2\x96\x81{{title}}";
  const std::string page = report_html(report, {}, {});
  const std::string data = between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  CHECK(json::parse(data) == to_json(report));
  CHECK_THAT(page, Contains("<h1>Gates of runs/&lt;x&gt;</h1>"));
  CHECK(page.find("{{title}}", page.find("{{title}}") + 1) == std::string::npos);  // only the piece's own
  for (const char* foreign : {"http://", "https://", "src=", "@import", "url("}) {
    INFO(foreign);
    CHECK(page.find(foreign) == std::string::npos);  // nothing comes from a network
  }
}

TEST_CASE("the tables have a line for each thing told", "[analysis]") {
  const GatesReport report = report_of({});
  const Tables tables = report_tables(report);
  CHECK(lines_in(tables.at("heads.csv")) == 1 + 4);
  CHECK(lines_in(tables.at("layers.csv")) == 1 + 2);
  CHECK(lines_in(tables.at("dynamics.csv")) == 1 + 2 * 4);
  CHECK(lines_in(tables.at("positions.csv")) == 1 + 4 * 5);
  CHECK_THAT(tables.at("heads.csv"), Contains("layer,head,values,mean,std,"));
  CHECK_THAT(tables.at("heads.csv"), Contains("below_0.01,below_0.1,below_0.5"));
  CHECK_THAT(tables.at("heads.csv"), Contains("\r\n2,1,499," + json(report.model.gates->heads[3].mean).dump()));
  CHECK(tables.count("access.csv") == 0);
}

TEST_CASE("a field of a table is quoted where it must be", "[analysis]") {
  GatesReport report = report_of({});
  report.model.gates->details->tokens.heads[0].top[0].piece = "a\"b,\n";
  CHECK_THAT(report_tables(report).at("tokens.csv"), Contains(",\"a\"\"b,\n\","));
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
    const GatesReport report = report_of(overrides);
    CHECK(names_of(report_plots(report)) == names);
    const testing::TemporaryFolder folder;
    if (!have_gnuplot()) {
      WARN("gnuplot was not found: nothing drawn");
      continue;
    }
    write_report(report, folder.path());
    for (const std::string& name : names) {
      CHECK_THAT(testing::read_text(folder / ("plots/" + name + ".svg")), Contains("</svg>"));
      CHECK_THAT(testing::read_text(folder / ("plots/" + name + ".png")), Contains("PNG") && Contains("IEND"));
    }
    CHECK_FALSE(std::filesystem::exists(folder / "plots/plots.gnuplot"));
    const std::string page = testing::read_text(folder / "report.html");
    for (const std::string& name : names)
      CHECK_THAT(page, Contains("<figure id=\"plot-" + name + "\"><svg role=\"img\""));
    CHECK(page.find("id='gp") == std::string::npos);  // ids of one picture only
    CHECK(json::parse(testing::read_text(folder / "gates.json")) == to_json(report));
    CHECK(report.findings.size() >= 1);
  }
}
