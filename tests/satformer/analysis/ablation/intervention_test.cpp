#include "satformer/analysis/ablation/intervention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>

#include <algorithm>

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;

}  // namespace

TEST_CASE("shuffle permutes the gates of the tokens that count", "[analysis][ablation]") {
  const std::int64_t windows = 3, length = 7, heads = 2;
  const at::Tensor ids = at::arange(windows * length, at::kLong).view({windows, length});
  std::vector<TokenRow> rows;  // the last window's last two tokens are padding
  for (std::int64_t i = 0; i < windows * length - 2; ++i) rows.push_back({.row = i, .index = i, .id = i});
  const at::Tensor alpha = at::rand({windows, length, heads});
  GateIntervention intervention({.mode = InterventionMode::shuffle, .seed = 1}, nullptr, nullptr);
  intervention.begin_batch(ids, rows, 10);
  const at::Tensor shuffled = intervention.first_value_weights(2, alpha);
  CHECK_FALSE(shuffled.equal(alpha));
  CHECK_FALSE(shuffled.equal(intervention.first_value_weights(3, alpha)));
  for (std::int64_t b = 0; b < windows; ++b) {
    const std::int64_t count = b + 1 < windows ? length : length - 2;
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto gates = [&](const at::Tensor& x) { return x[b].slice(0, 0, count).select(1, head); };
      CHECK(std::get<0>(gates(shuffled).sort()).equal(std::get<0>(gates(alpha).sort())));
    }
    CHECK(shuffled[b].slice(0, count).equal(alpha[b].slice(0, count)));
  }
  // The second window alone.
  const std::vector<TokenRow> second = [&] {
    std::vector<TokenRow> result(rows.begin() + length, rows.begin() + 2 * length);
    for (TokenRow& row : result) row.row -= length;
    return result;
  }();
  intervention.begin_batch(ids.slice(0, 1, 2), second, 11);
  CHECK(intervention.first_value_weights(2, alpha.slice(0, 1, 2)).equal(shuffled.slice(0, 1, 2)));
}

TEST_CASE("a group of tokens is replaced alone", "[analysis][ablation]") {
  const TokenCategories categories = TokenCategories::parse(R"({"name": "two", "sources": [],
    "classes": [{"name": "word", "group": "semantic", "default": true},
                {"name": "point", "group": "structural", "characters": ["."]},
                {"name": "special", "group": "none", "special": true}],
    "contrast": ["semantic", "structural"]})",
                                                            "two.json");
  const std::vector<TokenClass>& classes = categories.classes();
  const auto point =
      std::find_if(classes.begin(), classes.end(), [](const TokenClass& c) { return c.name == "point"; });
  const std::int64_t other_class = point - classes.begin(), length = 6;
  const at::Tensor ids = at::arange(length, at::kLong).unsqueeze(0), alpha = at::rand({1, length, 2}) + 1.0;
  std::vector<TokenRow> rows;
  for (std::int64_t i = 0; i < length; ++i)
    rows.push_back({.row = i, .id = i, .token_class = i % 3 == 0 ? other_class : 0});
  GateIntervention intervention({.mode = InterventionMode::zero}, nullptr, &categories);
  intervention.begin_batch(ids, rows, 0);
  intervention.select({.layer = {}, .head = 1, .group = categories.group_of(static_cast<int>(other_class))});
  const at::Tensor result = intervention.first_value_weights(1, alpha);
  for (std::int64_t t = 0; t < length; ++t) {
    CHECK(result[0][t][0].equal(alpha[0][t][0]));
    CHECK(result[0][t][1].item<float>() == (t % 3 == 0 ? 0.0f : alpha[0][t][1].item<float>()));
  }
}
