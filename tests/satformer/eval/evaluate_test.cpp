#include "satformer/eval/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "satformer/core/error.h"
#include "tests/catch.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

namespace {

using namespace satformer;
using Catch::Matchers::Contains;

constexpr std::int64_t kSeqLength = 16;

struct Setting {
  testing::TemporaryFolder folder;
  std::filesystem::path data = testing::make_tiny_data(folder.path() / "data");
  data::TokenDataset dataset = data::TokenDataset::open(data, "val", {.vocab_size = testing::kTinyVocabulary});
  std::shared_ptr<models::LanguageModel> model;
  eval::EvaluationOptions options;

  Setting() {
    const train::RunConfig config = testing::tiny_config(data);
    model = models::make_model(config.model, 7);
    model->eval();
    options.batch = train::batch_options(config.data, config.model);
  }
};

// -log p of every token but the first, window by window, without padding or batches.
std::vector<double> losses_one_by_one(Setting& setting) {
  const at::NoGradGuard no_grad;
  std::vector<double> losses;
  const std::int64_t tokens = setting.dataset.num_tokens();
  for (std::int64_t begin = 0; begin + 1 < tokens; begin += kSeqLength) {
    const std::int64_t length = std::min(kSeqLength, tokens - 1 - begin);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(length + 1));
    setting.dataset.read(begin, ids);
    const at::Tensor window = at::tensor(ids).unsqueeze(0);
    const at::Tensor logits = setting.model->logits(setting.model->hidden_states({window.slice(1, 0, length), {}, {}}));
    const at::Tensor log_p = at::log_softmax(logits.to(at::kDouble), -1);
    for (std::int64_t t = 0; t < length; ++t) losses.push_back(-log_p[0][t][ids[t + 1]].item<double>());
  }
  return losses;
}

double sum_of_first(const std::vector<double>& losses, std::size_t count) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += losses[i];
  return sum;
}

}  // namespace

TEST_CASE("evaluate scores every token but the first exactly once", "[eval]") {
  Setting setting;
  const std::vector<double> losses = losses_one_by_one(setting);
  REQUIRE(losses.size() == 499);  // 31 windows of 16 and one of 3
  const eval::LossTotal all = evaluate(*setting.model, setting.dataset, setting.options);
  CHECK(all.num_targets == 499);
  CHECK(all.loss_sum == Approx(sum_of_first(losses, 499)).epsilon(1e-6));
  CHECK(all.mean() == Approx(all.loss_sum / 499));
  CHECK(all.perplexity() == Approx(std::exp(all.mean())));
}

TEST_CASE("evaluate's result does not depend on how many windows run together", "[eval]") {
  Setting setting;
  const double whole = evaluate(*setting.model, setting.dataset, setting.options).loss_sum;
  for (const std::int64_t sequences : {1, 3, 32, 1000}) {
    setting.options.sequences = sequences;
    const eval::LossTotal cut = evaluate(*setting.model, setting.dataset, setting.options);
    CHECK(cut.num_targets == 499);
    CHECK(cut.loss_sum == Approx(whole).epsilon(1e-6));
  }
}

TEST_CASE("evaluate stops after exactly max_targets targets", "[eval]") {
  Setting setting;
  const std::vector<double> losses = losses_one_by_one(setting);
  for (const std::int64_t wanted : {1, 16, 17, 300, 498, 499, 5000}) {
    for (const std::int64_t sequences : {1, 5}) {
      setting.options.max_targets = wanted;
      setting.options.sequences = sequences;
      std::int64_t reported = 0;
      setting.options.progress = [&reported](std::int64_t targets) { reported = targets; };
      const eval::LossTotal part = evaluate(*setting.model, setting.dataset, setting.options);
      const std::int64_t expected = std::min<std::int64_t>(wanted, 499);
      CHECK(part.num_targets == expected);
      CHECK(reported == expected);
      CHECK(part.loss_sum == Approx(sum_of_first(losses, static_cast<std::size_t>(expected))).epsilon(1e-6));
    }
  }
}

TEST_CASE("evaluate needs one whole window", "[eval]") {
  Setting setting;
  setting.options.batch.seq_length = 500;
  CHECK_THROWS_WITH(evaluate(*setting.model, setting.dataset, setting.options),
                    Contains("500 tokens; one window of seq_length 500 needs 501"));
  setting.options.batch.seq_length = 499;
  CHECK_NOTHROW(evaluate(*setting.model, setting.dataset, setting.options));
}

TEST_CASE("bits per byte are nats over ln 2 and bytes", "[eval]") {
  const eval::LossTotal evaluation{.loss_sum = 100.0 * std::numbers::ln2, .num_targets = 40};
  CHECK(evaluation.bits_per_byte(50) == Approx(2.0));
}

TEST_CASE("evaluate in bfloat16 is close to float32", "[eval]") {
  Setting setting;
  const double exact = evaluate(*setting.model, setting.dataset, setting.options).mean();
  setting.options.dtype = c10::ScalarType::BFloat16;
  const double rounded = evaluate(*setting.model, setting.dataset, setting.options).mean();
  CHECK(rounded == Approx(exact).epsilon(1e-2));
  CHECK(rounded != exact);
}
