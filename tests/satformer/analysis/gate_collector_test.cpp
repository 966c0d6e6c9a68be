#include "satformer/analysis/gate_collector.h"

#include <cmath>
#include <limits>
#include <random>

#include "satformer/analysis/category_estimates.h"
#include "satformer/core/error.h"
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;
using Catch::Matchers::Contains;

constexpr std::int64_t kHeads = 3, kTokens = 500, kIds = 11, kBlocks = 5;

// 500 tokens of 2 layers with 3 heads, given to a collector in batches of 64 rows of which the last ones do not count.
struct Synthetic {
  GateCollector collector{{.layers = {1, 4},
                           .heads = kHeads,
                           .vocab_size = kIds,
                           .position_buckets = 6,
                           .classes = 0,
                           .blocks = kBlocks,
                           .text_tokens = 70},
                          {}};
  std::vector<TokenRow> rows;
  std::vector<std::vector<float>> alpha{2, std::vector<float>(kTokens * kHeads)};

  explicit Synthetic(std::int64_t classes) {
    GateShape shape = collector.shape();
    shape.classes = classes;
    collector = GateCollector(shape, {});
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < kTokens; ++i) {
      rows.push_back({.row = i,
                      .index = i,
                      .id = static_cast<std::int64_t>(random() % kIds),
                      .bucket = position_bucket(i % 32),
                      .token_class = classes > 0 ? static_cast<std::int64_t>(random()) & 1 : 0,
                      .block = i / 100});
    }
    for (std::vector<float>& layer : alpha) {
      for (std::size_t i = 0; i < layer.size(); ++i) {
        layer[i] = std::max(0.0f, normal(random) + 0.4f * static_cast<float>(rows[i / kHeads].token_class));
      }
    }
    give(64);
  }

  void give(std::int64_t batch) {
    for (std::int64_t begin = 0; begin < kTokens; begin += batch) {
      const std::int64_t count = std::min(batch, kTokens - begin);
      std::vector<TokenRow> part(rows.begin() + begin, rows.begin() + begin + count);
      for (TokenRow& row : part) row.row -= begin;
      collector.begin_batch(std::move(part));
      for (std::int64_t layer = 0; layer < 2; ++layer) {
        std::vector<float> values(static_cast<std::size_t>(batch * kHeads), 99.0f);  // padding that must not count
        const auto from = alpha[static_cast<std::size_t>(layer)].begin() + begin * kHeads;
        std::copy(from, from + count * kHeads, values.begin());
        const std::vector<float> contribution(values.size(), 0.5f);
        collector.add(layer, values, contribution);
      }
    }
  }

  double value(std::int64_t cell, std::int64_t token) const {
    return alpha[static_cast<std::size_t>(cell / kHeads)][static_cast<std::size_t>(token * kHeads + cell % kHeads)];
  }
  // Mean over the tokens that `fits` and over cells [first, last).
  template <typename Fits>
  double mean(std::int64_t first, std::int64_t last, Fits&& fits) const {
    double sum = 0.0, count = 0.0;
    for (const TokenRow& row : rows) {
      for (std::int64_t cell = first; cell < last && fits(row); ++cell) sum += value(cell, row.index), count += 1.0;
    }
    return sum / count;
  }
};

TokenCategories two_classes() {
  return TokenCategories::parse(R"({"name": "two", "contrast": ["a", "b"], "classes": [
    {"name": "x", "group": "b", "special": true}, {"name": "y", "group": "a", "default": true}]})",
                                "two.json");
}

}  // namespace

TEST_CASE("positions fall in buckets by powers of two", "[analysis]") {
  std::vector<std::int64_t> buckets;
  for (const std::int64_t position : {0, 1, 2, 3, 4, 7, 8, 1023, 1024}) buckets.push_back(position_bucket(position));
  CHECK(buckets == std::vector<std::int64_t>{0, 1, 2, 2, 3, 3, 4, 10, 11});
  for (std::int64_t bucket = 0; bucket < 12; ++bucket) CHECK(position_bucket(bucket_begin(bucket)) == bucket);
}

TEST_CASE("the collector's sums are those over all tokens", "[analysis]") {
  const Synthetic data(0);
  const GateCollector& collector = data.collector;
  CHECK(collector.tokens() == kTokens);
  const auto all = [](const TokenRow&) { return true; };
  for (std::int64_t cell = 0; cell < 6; ++cell) {
    CHECK(collector.head(cell).count() == kTokens);
    CHECK(collector.head(cell).mean() == Approx(data.mean(cell, cell + 1, all)).epsilon(1e-12));
    CHECK(collector.head(cell).contribution().mean() == 0.5);
    for (std::int64_t bucket = 0; bucket < 6; ++bucket) {
      const double mean = data.mean(cell, cell + 1, [&](const TokenRow& row) { return row.bucket == bucket; });
      const auto tokens = static_cast<double>(collector.bucket_tokens(bucket));
      CHECK(collector.bucket_sums(cell, bucket).alpha / tokens == Approx(mean).epsilon(1e-12));
    }
    for (std::int64_t id = 0; id < kIds; ++id) {
      const double mean = data.mean(cell, cell + 1, [&](const TokenRow& row) { return row.id == id; });
      CHECK(collector.id_mean(cell, id) == Approx(mean).epsilon(1e-12));
    }
    for (std::int64_t token = 0; token < 70; ++token)
      CHECK(collector.text_alpha(cell, token) == data.value(cell, token));
  }
  CHECK(collector.text_ids().size() == 70);
  CHECK(collector.layer(1).mean() == Approx(data.mean(3, 6, all)).epsilon(1e-12));
  CHECK(collector.model().mean() == Approx(data.mean(0, 6, all)).epsilon(1e-12));
  CHECK(collector.cell_name(4) == "layer 4 head 1");
}

TEST_CASE("a gate that is not finite is an error that names its place", "[analysis]") {
  Synthetic data(0);
  data.collector.begin_batch({{.row = 1, .index = 777}});
  std::vector<float> values(2 * kHeads, 0.0f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(data.collector.add(1, values, values), Contains("layer 4 head 0 is not finite at token 777"));
}

TEST_CASE("estimates by class are means over tokens and heads, the contrast their difference", "[analysis]") {
  const Synthetic data(2);
  const TokenCategories categories = two_classes();
  const BlockBootstrap bootstrap(kBlocks, {.resamples = 500});
  for (const auto& [first, cells] : {std::pair<std::int64_t, std::int64_t>{0, 6}, {3, 3}, {4, 1}}) {
    const CategoryTable table = category_table(data.collector, categories, bootstrap, first, cells);
    double means[2];
    for (std::int64_t c = 0; c < 2; ++c) {
      means[c] = data.mean(first, first + cells, [c = c](const TokenRow& row) { return row.token_class == c; });
      const Estimate& mean = table.classes[static_cast<std::size_t>(c)].mean;
      CHECK(mean.value == Approx(means[c]).epsilon(1e-12));
      REQUIRE(mean.interval.has_value());
      CHECK(mean.interval->low < mean.value);
      CHECK(mean.value < mean.interval->high);
    }
    CHECK(table.contrast.mean.value == Approx(means[1] - means[0]).epsilon(1e-12));
    CHECK(table.contrast.mean.interval->low > 0.0);  // 0.4 was put in
    CHECK(table.all.mean.value ==
          Approx(data.mean(first, first + cells, [](const TokenRow&) { return true; })).epsilon(1e-12));
    CHECK(table.groups[0].mean.value == table.classes[0].mean.value);  // one class a group
  }
}

TEST_CASE("a class without tokens has no estimate", "[analysis]") {
  const Synthetic data(3);  // the third is never drawn
  const TokenCategories categories = TokenCategories::parse(
      R"({"name": "three", "contrast": ["a", "c"], "classes": [{"name": "x", "group": "b", "special": true},
          {"name": "y", "group": "a", "default": true}, {"name": "z", "group": "c", "words": ["z"]}]})",
      "three.json");
  const CategoryTable table =
      category_table(data.collector, categories, BlockBootstrap(kBlocks, {.resamples = 100}), 0, 6);
  CHECK(std::isnan(table.classes[2].mean.value));
  CHECK_FALSE(table.classes[2].mean.interval.has_value());
  CHECK(std::isnan(table.contrast.mean.value));
  CHECK_FALSE(table.contrast.open_share.interval.has_value());
}
