#include "satformer/analysis/ablation/files.h"

#include <cmath>

#include "tests/satformer/analysis/reference.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;

AblationReport report_of(AblationScope scope, const InterventionRule& rule, std::vector<GateSelection> selections,
                         std::vector<std::vector<double>> losses) {
  Ablation ablation;
  ablation.selections = std::move(selections);
  ablation.targets = {10, 10, 10, 10};
  ablation.intact = {20, 22, 18, 21};
  ablation.losses = std::move(losses);
  AblationReport report;
  report.version = "0";
  report.checkpoint = "runs/x";
  report.architecture = "satformer";
  report.rule = rule;
  report.scope = scope;
  report.data = {.name = "d", .split = "val", .tokens = 40, .windows = 5, .blocks = 4, .seq_length = 8};
  if (rule.mode == InterventionMode::mean) report.calibration = {"c", "train", 64};
  report.seconds = 1.5;
  const TokenCategories categories = reference_categories();
  add_numbers(report, ablation, &categories, {.resamples = 50});
  report.finding = ablation_finding(report);
  return report;
}

}  // namespace

TEST_CASE("an ablation's JSON, table and plots are those of the reference, byte for byte", "[analysis][ablation]") {
  const std::vector<GateSelection> heads{{.layer = 1, .head = 0, .group = {}},
                                         {.layer = 1, .head = 1, .group = {}},
                                         {.layer = 3, .head = 0, .group = {}},
                                         {.layer = 3, .head = 1, .group = {}}};
  const std::vector<GateSelection> groups{{.layer = {}, .head = {}, .group = 0}, {.layer = {}, .head = {}, .group = 1}};
  const std::vector<GateSelection> layers{{.layer = 1, .head = {}, .group = {}}, {.layer = 3, .head = {}, .group = {}}};
  const std::vector<AblationReport> reports{
      report_of(AblationScope::head, {.mode = InterventionMode::zero}, heads,
                {{21, 23, 19, 21}, {30, 22, 18, 20}, {19, 21, 17, 20}, {20, 22, 18, 23}}),
      report_of(AblationScope::category, {.mode = InterventionMode::mean}, groups,
                {{21, 21, 19, 21}, {20, 23, 18, 20}}),
      report_of(AblationScope::layer, {.mode = InterventionMode::scale, .scale = -2}, layers,
                {{21, 23, 19, 21}, {NAN, 22, 18, 20}})};
  nlohmann::json documents = nlohmann::json::array();
  std::string tables, plots;
  for (const AblationReport& report : reports) {
    documents.push_back(to_json(report));
    tables += ablation_table(report);
    plots += text_of(ablation_plots(report));
  }
  CHECK(documents.dump(1) + "\n" == reference("ablation.json"));
  CHECK(tables == reference("ablation.csv"));
  CHECK(plots == reference("ablation.gnuplot"));
}
