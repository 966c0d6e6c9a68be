#include "satformer/analysis/gates/collect.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>

#include <map>

#include "tests/satformer/analysis/support.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;

// What the model shows, window by window: the reference for everything that streams.
struct Shown : nn::Observer {
  std::map<std::int64_t, std::vector<at::Tensor>> alpha, contribution;  // by layer: [T, H] of each window
  void gates(std::int64_t layer, const nn::GateObservation& seen) override {
    alpha[layer].push_back(at::relu(seen.logits).squeeze(0).to(at::kDouble));
    const auto length = [](const at::Tensor& values) {
      const at::Tensor x = values.squeeze(0).to(at::kDouble);
      return (x * x).sum(-1).sqrt();
    };
    contribution[layer].push_back(length(alpha[layer].back().unsqueeze(-1) * seen.first_values.squeeze(0)) /
                                  length(seen.values));
  }
};

Shown shown_one_by_one(TinyStudy& study) {
  const at::NoGradGuard no_grad;
  Shown shown;
  const std::int64_t inputs = study.dataset.num_tokens() - 1;
  for (std::int64_t begin = 0; begin < inputs; begin += 16) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min<std::int64_t>(16, inputs - begin)));
    study.dataset.read(begin, ids);
    study.model->hidden_states({at::tensor(ids).unsqueeze(0), {}, {}}, &shown);
  }
  return shown;
}

}  // namespace

TEST_CASE("the study's gates are those that the model uses, each token once", "[analysis]") {
  TinyStudy study;
  const Shown shown = shown_one_by_one(study);
  const GateCollector collector = collect_gates(*study.model, study.stream(), {.gates = {}, .text_tokens = 40});
  REQUIRE(collector.shape().layers == std::vector<std::int64_t>{1, 2});
  CHECK(collector.tokens() == 499);
  for (std::int64_t i = 0; i < 2; ++i) {
    const at::Tensor alpha = at::cat(shown.alpha.at(i + 1)), contribution = at::cat(shown.contribution.at(i + 1));
    REQUIRE(alpha.size(0) == 499);
    for (std::int64_t head = 0; head < 2; ++head) {
      const GateSeries& series = collector.head(2 * i + head);
      const at::Tensor column = alpha.select(1, head);
      CHECK(series.count() == 499);
      CHECK(series.mean() == Approx(column.mean().item<double>()).epsilon(1e-5));
      CHECK(series.standard_deviation() ==
            Approx((column - column.mean()).square().mean().sqrt().item<double>()).epsilon(1e-5));
      CHECK(series.zero_fraction() == Approx(column.eq(0).to(at::kDouble).mean().item<double>()));
      CHECK(series.contribution().mean() == Approx(contribution.select(1, head).mean().item<double>()).epsilon(1e-5));
      for (std::int64_t t = 0; t < 40; ++t) {
        CHECK(collector.text_alpha(2 * i + head, t) == Approx(column[t].item<double>()).epsilon(1e-5).margin(1e-7));
      }
    }
  }
}

TEST_CASE("the study does not depend on how many windows run together", "[analysis]") {
  TinyStudy study;
  const GateCollector whole = collect_gates(*study.model, study.stream(), {});
  for (const std::int64_t sequences : {1, 5, 1000}) {
    study.options.sequences = sequences;
    const GateCollector cut = collect_gates(*study.model, study.stream(), {});
    CHECK(cut.tokens() == whole.tokens());
    CHECK(cut.model().mean() == Approx(whole.model().mean()).epsilon(1e-5));
    for (std::int64_t bucket = 0; bucket < 5; ++bucket) CHECK(cut.bucket_tokens(bucket) == whole.bucket_tokens(bucket));
  }
  study.options.max_windows = 3;
  CHECK(collect_gates(*study.model, study.stream(), {}).tokens() == 48);
}

TEST_CASE("half of a new model's ReLU gates are zero", "[analysis]") {
  TinyStudy study;
  const GateCollector collector = collect_gates(*study.model, study.stream(), {});
  // 2 layers of 2 heads: each head's logits share a direction, so that few heads scatter widely about the half.
  CHECK(collector.model().zero_fraction() > 0.3);
  CHECK(collector.model().zero_fraction() < 0.7);
}

TEST_CASE("positions count from the start of each document where the mask does", "[analysis]") {
  TinyStudy study;
  study.options.batch.document_mask = true;
  study.options.batch.end_of_text_id = 3;
  std::vector<std::int64_t> expected(5);
  std::vector<std::int64_t> ids(499);
  study.dataset.read(0, ids);
  std::int64_t position = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 16 == 0) position = 0;
    ++expected[static_cast<std::size_t>(position_bucket(position))];
    position = ids[i] == 3 ? 0 : position + 1;
  }
  const GateCollector collector = collect_gates(*study.model, study.stream(), {});
  for (std::int64_t bucket = 0; bucket < 5; ++bucket) {
    CHECK(collector.bucket_tokens(bucket) == expected[static_cast<std::size_t>(bucket)]);
  }
}

TEST_CASE("the blocks of the bootstrap are runs of windows", "[analysis]") {
  TinyStudy study;
  study.options.max_blocks = 8;
  const TokenStream stream = study.stream();
  CHECK(stream.windows() == 32);
  CHECK(stream.blocks() == 8);
  std::vector<std::int64_t> tokens(8);
  nn::Observer nothing;
  stream.run(*study.model, nothing, [&](const std::vector<TokenRow>& rows) {
    for (const TokenRow& row : rows) ++tokens[static_cast<std::size_t>(row.block)];
  });
  CHECK(tokens == std::vector<std::int64_t>{64, 64, 64, 64, 64, 64, 64, 51});
}
