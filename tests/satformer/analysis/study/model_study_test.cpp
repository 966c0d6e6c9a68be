#include "satformer/analysis/study/model_study.h"

#include "satformer/core/error.h"
#include "tests/satformer/analysis/support.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;
using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("a study has the numbers of the collector, rounded to seven digits", "[analysis]") {
  TinyStudy study;
  const ModelStudy result = study_model(*study.model, study.stream(), {}, StudyParts::all);
  const GateCollector collector = collect_gates(*study.model, study.stream(), {});
  CHECK_FALSE(result.access.has_value());
  REQUIRE(result.gates.has_value());
  const GateSummary& gates = *result.gates;
  CHECK(gates.function == "relu");
  CHECK(gates.layers.size() == 2);
  REQUIRE(gates.heads.size() == 4);
  CHECK(gates.heads[3].layer == 2);
  CHECK(gates.heads[3].head == 1);
  CHECK(gates.heads[3].mean == rounded(collector.head(3).mean()));
  CHECK(gates.heads[3].mean == Approx(collector.head(3).mean()).epsilon(1e-6));
  CHECK_FALSE(gates.categories.has_value());
  REQUIRE(gates.details.has_value());
  CHECK(gates.details->text.pieces.empty());
  std::int64_t counted = 0;
  for (const auto& head : gates.details->histogram.heads) {
    counted += head.zeros;
    for (const std::int64_t count : head.counts) counted += count;
  }
  CHECK(counted == 4 * 499);
  const GateSummary point = for_dynamics(gates);
  CHECK(point.heads[3].mean == gates.heads[3].mean);
  CHECK_FALSE(point.details.has_value());
  CHECK_FALSE(point.positions.has_value());
}

TEST_CASE("a study of another architecture has access and no gates", "[analysis]") {
  TinyStudy setting({"model.architecture=\"denseformer\""});
  const ModelStudy study = study_model(*setting.model, setting.stream(), {}, StudyParts::all);
  CHECK_FALSE(study.gates.has_value());
  REQUIRE(study.access.has_value());
  CHECK(study.access->readers.size() == 3);
  CHECK(study.access->readers[1].weights.means.size() == 3);
}

TEST_CASE("a model without gates or depth access cannot be studied", "[analysis]") {
  TinyStudy plain({"model.architecture=\"transformer\""});
  CHECK_FALSE(has_early_access(plain.model->config()));
  CHECK_THROWS_WITH(study_model(*plain.model, plain.stream(), {}, StudyParts::all), Contains("no access"));
  CHECK_THROWS_WITH(collect_gates(*plain.model, plain.stream(), {}), Contains("transformer"));
}
