#include "satformer/analysis/ablation/report.h"

#include <cmath>

#include "tests/catch.h"

namespace {

using namespace satformer::analysis;
using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("ablation's numbers: losses, changes, intervals, ranks", "[analysis][ablation]") {
  Ablation ablation;
  ablation.selections = {{.layer = 1, .head = 0, .group = {}}, {.layer = 1, .head = 1, .group = {}}};
  ablation.targets = {10, 10, 10, 10};
  ablation.intact = {20, 22, 18, 20};
  ablation.losses = {{21, 23, 19, 21}, {30, 22, 18, 20}};  // 0.1 everywhere; 1.0 in one block
  AblationReport report;
  add_numbers(report, ablation, nullptr, {.resamples = 500});
  CHECK(report.intact.loss == 2.0);
  CHECK(report.intact.perplexity == Approx(std::exp(2.0)).epsilon(1e-6));
  const std::vector<AblationRow>& rows = report.ablations;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].change.value == Approx(0.1));
  // Paired: the blocks differ, the differences do not.
  CHECK(rows[0].change.interval.value().low == Approx(0.1));
  CHECK(rows[0].change.interval.value().high == Approx(0.1));
  CHECK(rows[0].rank == 2);
  CHECK(rows[1].rank == 1);
  CHECK(rows[1].change.value == Approx(0.25));
  CHECK(rows[1].change.interval.value().low == 0.0);
  CHECK(rows[1].change.interval.value().high > 0.4);
  CHECK_FALSE(rows[1].category.has_value());
  CHECK(report.ranked()[0].head == 1);
}

TEST_CASE("losses that are not finite are told, not ranked by chance", "[analysis][ablation]") {
  Ablation ablation;
  ablation.selections = {{.layer = 1, .head = {}, .group = {}}, {.layer = 2, .head = {}, .group = {}}};
  ablation.targets = {10, 10};
  ablation.intact = {20, 22};
  ablation.losses = {{21, 23}, {NAN, 22}};
  AblationReport report;
  report.rule = {.mode = InterventionMode::scale, .scale = 1e30};
  add_numbers(report, ablation, nullptr, {});
  CHECK(report.ablations[1].rank == 1);
  const nlohmann::json row = to_json(report)["ablations"][1];
  CHECK(row["loss"].is_null());
  CHECK(row["change"]["value"].is_null());
  CHECK_THAT(ablation_finding(report), Contains("layer 2") && Contains("not finite"));
}
