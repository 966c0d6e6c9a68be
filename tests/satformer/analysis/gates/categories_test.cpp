#include "satformer/analysis/gates/categories.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/satformer/analysis/gates/synthetic.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;

TokenCategories two_classes() {
  return TokenCategories::parse(R"({"name": "two", "contrast": ["a", "b"], "classes": [
    {"name": "x", "group": "b", "special": true}, {"name": "y", "group": "a", "default": true}]})",
                                "two.json");
}

}  // namespace

TEST_CASE("estimates by class are means over tokens and heads, the contrast their difference", "[analysis]") {
  const Synthetic data(2);
  const TokenCategories categories = two_classes();
  const BlockBootstrap bootstrap(kBlocks, {.resamples = 500});
  for (const auto& [first, cells] : {std::pair<std::int64_t, std::int64_t>{0, 6}, {3, 3}, {4, 1}}) {
    const CategoryEstimates table = category_estimates(data.collector, categories, bootstrap, first, cells);
    double means[2];
    for (std::int64_t c = 0; c < 2; ++c) {
      means[c] = data.mean(first, first + cells, [c = c](const TokenRow& row) { return row.token_class == c; });
      const Estimate& mean = table.classes.at(c == 0 ? "x" : "y").mean;
      CHECK(mean.value == Approx(means[c]).epsilon(1e-12));
      REQUIRE(mean.interval.has_value());
      CHECK(mean.interval->low < mean.value);
      CHECK(mean.value < mean.interval->high);
    }
    CHECK(table.contrast.mean.value == Approx(means[1] - means[0]).epsilon(1e-12));
    CHECK(table.contrast.mean.interval->low > 0.0);  // 0.4 was put in
    CHECK(table.all.mean.value ==
          Approx(data.mean(first, first + cells, [](const TokenRow&) { return true; })).epsilon(1e-12));
    CHECK(table.groups.at("b").mean.value == table.classes.at("x").mean.value);  // one class a group
  }
}

TEST_CASE("a class without tokens has no estimate", "[analysis]") {
  const Synthetic data(3);  // the third is never drawn
  const TokenCategories categories = TokenCategories::parse(
      R"({"name": "three", "contrast": ["a", "c"], "classes": [{"name": "x", "group": "b", "special": true},
          {"name": "y", "group": "a", "default": true}, {"name": "z", "group": "c", "words": ["z"]}]})",
      "three.json");
  const CategoryEstimates table =
      category_estimates(data.collector, categories, BlockBootstrap(kBlocks, {.resamples = 100}), 0, 6);
  CHECK(std::isnan(table.classes.at("z").mean.value));
  CHECK_FALSE(table.classes.at("z").mean.interval.has_value());
  CHECK(std::isnan(table.contrast.mean.value));
  CHECK_FALSE(table.contrast.open_share.interval.has_value());
}
