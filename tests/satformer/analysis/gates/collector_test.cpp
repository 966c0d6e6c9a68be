#include "satformer/analysis/gates/collector.h"

#include <limits>

#include "satformer/core/error.h"
#include "tests/catch.h"
#include "tests/satformer/analysis/gates/synthetic.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;
using Catch::Matchers::Contains;

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
