#include "satformer/analysis/ablation/calibration.h"

#include "satformer/analysis/gates/collect.h"
#include "tests/satformer/analysis/support.h"

// After torch.
#include "tests/catch.h"

using namespace satformer;
using namespace satformer::analysis;

TEST_CASE("means are those of the gates, by head and by token", "[analysis][ablation]") {
  TinyStudy study;
  study.options.sequences = 3;
  const GateMeans means = calibrate_gates(*study.model, study.stream(), true);
  const GateCollector collector = collect_gates(*study.model, study.stream(), {});
  CHECK(means.count == 499);
  REQUIRE(means.heads.sizes() == at::IntArrayRef({3, 2}));
  REQUIRE(means.tokens.sizes() == at::IntArrayRef({3, 61, 2}));
  for (std::int64_t cell = 0; cell < 4; ++cell) {
    const std::int64_t layer = 1 + cell / 2, head = cell % 2;
    CHECK(means.heads[layer][head].item<double>() == Approx(collector.head(cell).mean()).epsilon(1e-6));
    for (std::int64_t id = 0; id < 61; ++id) {
      const double expected = collector.id_tokens(id) > 0 ? collector.id_mean(cell, id) : collector.head(cell).mean();
      CHECK(means.tokens[layer][id][head].item<double>() == Approx(expected).epsilon(1e-6).margin(1e-9));
    }
  }
}
