// The models against the same equations written out in float64 (model_testing.cpp): values and every gradient.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "satformer/models/architectures.h"
#include "tests/satformer/models/model_testing.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using models::ModelConfig;
using models::ModelInput;
using nlohmann::json;
using namespace testing;

// Largest relative difference of logits and of any gradient, between a model of `dtype` and the float64 pass.
struct Differences {
  double logits = 0;
  double gradients = 0;
  std::string worst;
};

Differences differences(const ModelConfig& config, const ModelInput& input, at::ScalarType dtype) {
  const auto model = random_model(config, dtype);
  const Parameters parameters = double_parameters(*model);
  const at::Tensor targets = models::shift_labels(input.input_ids);
  const ExpectedPass expected = expected_pass(config, parameters, input);
  expected_loss_sum(expected.logits, targets).backward();
  const models::LossSum loss = model->loss(input, targets);
  loss.loss_sum.backward();
  Differences result;
  const at::NoGradGuard no_grad;
  result.logits = relative_difference(model->logits(model->hidden_states(input)), expected.logits);
  for (const auto& item : model->named_parameters()) {
    const at::Tensor& wanted = parameters.at(item.key()).grad();
    const at::Tensor& found = item.value().grad();
    if (!found.defined() || !wanted.defined()) {
      // Never used, or used with weight 0: both must agree that there is no gradient.
      const at::Tensor& defined = found.defined() ? found : wanted;
      if (defined.defined() && defined.abs().sum().item<double>() != 0) result.gradients = 1, result.worst = item.key();
      continue;
    }
    // The floor is for gradients that are 0 but for rounding: queries that see one key alone.
    const double scale = std::max(wanted.abs().max().item<double>(), 0.1);
    double difference = (found - wanted).abs().max().item<double>() / scale;
    // One number each, a sum over all tokens and streams whose terms cancel: in float32 a digit less.
    if (item.key().ends_with("dynamic_alpha_scale") || item.key().ends_with("dynamic_beta_scale")) difference /= 10;
    if (difference > result.gradients) result.gradients = difference, result.worst = item.key();
  }
  return result;
}

}  // namespace

TEST_CASE("every configuration is its equations, in float64", "[models][models_reference]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const Differences found = differences(config, plain_input(config), at::kDouble);
    INFO("worst gradient: " << found.worst);
    CHECK(found.logits < 1e-12);
    CHECK(found.gradients < 1e-10);
  }
}

TEST_CASE("every configuration is its equations, in float32", "[models][models_reference]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const Differences found = differences(config, plain_input(config), at::kFloat);
    INFO("worst gradient: " << found.worst);
    CHECK(found.logits < 1e-5);
    CHECK(found.gradients < 1e-4);
  }
}

TEST_CASE("attention and positions stay inside a document", "[models][models_reference]") {
  for (const models::Architecture& architecture : models::architectures()) {
    for (const json& keys : {json{}, json{{"window_size", 3}, {"num_kv_heads", 2}}}) {
      INFO(architecture.name << " " << keys.dump());
      const ModelConfig config = small_config(architecture.name, keys);
      const ModelInput input = document_input(config);
      const Differences found = differences(config, input, at::kDouble);
      CHECK(found.logits < 1e-12);
      CHECK(found.gradients < 1e-10);

      // A document alone gives what it gives among others.
      const auto model = random_model(config, at::kDouble);
      const at::NoGradGuard no_grad;
      const at::Tensor together = model->hidden_states(input)[0].slice(0, 4);
      const at::Tensor alone = model->hidden_states({input.input_ids.slice(0, 0, 1).slice(1, 4), {}, {}})[0];
      CHECK(relative_difference(together, alone) < 1e-12);
    }
  }
}

TEST_CASE("a token does not see what follows it", "[models]") {
  const ModelConfig config = small_config("satformer");
  const auto model = random_model(config, at::kFloat);
  const at::NoGradGuard no_grad;
  ModelInput input = plain_input(config, 9);
  const at::Tensor before = model->hidden_states(input).slice(1, 0, 5).clone();
  input.input_ids = input.input_ids.clone();
  input.input_ids.slice(1, 5).copy_((input.input_ids.slice(1, 5) + 1).remainder(config.vocab_size));
  CHECK(at::equal(model->hidden_states(input).slice(1, 0, 5), before));
}

TEST_CASE("positions may be given and shifted", "[models]") {
  const ModelConfig config = small_config("transformer");
  const auto model = random_model(config, at::kDouble);
  const at::NoGradGuard no_grad;
  ModelInput input = plain_input(config, 9);
  const at::Tensor implicit = model->hidden_states(input);
  input.positions = at::arange(9).expand({2, 9});
  CHECK(relative_difference(model->hidden_states(input), implicit) < 1e-14);
  input.positions = input.positions + 1000;  // rotary attention depends on distances alone
  CHECK(relative_difference(model->hidden_states(input), implicit) < 1e-9);
}

TEST_CASE("losses add up over micro-batches and ignore -100", "[models]") {
  const ModelConfig config = small_config("satformer");
  const auto model = random_model(config, at::kDouble);
  const ModelInput input = plain_input(config, 9);
  at::Tensor targets = models::shift_labels(input.input_ids);
  CHECK(targets.select(1, 8).eq(models::kIgnoreIndex).all().item<bool>());
  CHECK(at::equal(targets.slice(1, 0, 8), input.input_ids.slice(1, 1)));
  targets[1].slice(0, 0, 3).fill_(models::kIgnoreIndex);
  const at::NoGradGuard no_grad;
  const models::LossSum whole = model->loss(input, targets);
  CHECK(whole.num_targets == 8 + 5);
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < 2; ++row) {
    const auto part = model->loss({input.input_ids.slice(0, row, row + 1), {}, {}}, targets.slice(0, row, row + 1));
    sum += part.loss_sum.item<double>();
    count += part.num_targets;
  }
  CHECK(count == whole.num_targets);
  CHECK(sum == Approx(whole.loss_sum.item<double>()).epsilon(1e-12));
  targets.fill_(models::kIgnoreIndex);
  const models::LossSum none = model->loss(input, targets);
  CHECK(none.num_targets == 0);
  CHECK(none.loss_sum.item<double>() == 0);
}

TEST_CASE("the observer sees hidden states, gates and lambda1", "[models]") {
  struct Recorder : nn::Observer {
    void hidden(std::int64_t layer, const at::Tensor& value) override { layers.emplace_back(layer, value); }
    void gates(std::int64_t layer, const nn::GateObservation& seen) override {
      alpha.emplace_back(layer, seen.alpha);
      mixed.push_back(seen.values + seen.alpha.unsqueeze(-1) * seen.first_values);
    }
    void named(const std::string& name, const at::Tensor& value) override { others[name] = value; }
    std::vector<std::pair<std::int64_t, at::Tensor>> layers, alpha;
    std::vector<at::Tensor> mixed;
    std::map<std::string, at::Tensor> others;
  };
  const at::NoGradGuard no_grad;
  for (const models::Architecture& architecture : models::architectures()) {
    INFO(architecture.name);
    const ModelConfig config = small_config(architecture.name, {{"value_residual_last_k", 2}});
    const auto model = random_model(config, at::kDouble);
    const ModelInput input = plain_input(config);
    Recorder recorder;
    const at::Tensor hidden = model->hidden_states(input, &recorder);
    const ExpectedPass expected = expected_pass(config, double_parameters(*model), input);
    REQUIRE(recorder.layers.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(recorder.layers[i].first == static_cast<std::int64_t>(i));
      CHECK(relative_difference(recorder.layers[i].second, expected.layers[i]) < 1e-12);
    }
    CHECK(at::equal(recorder.others.at("final_norm"), hidden));
    CHECK(at::equal(model->hidden_states(input), hidden));
    REQUIRE(recorder.alpha.size() == expected.alpha.size());
    CHECK(recorder.alpha.size() == (config.architecture == "satformer" ? 2 : 0));
    for (std::size_t i = 0; i < expected.alpha.size(); ++i) {
      CHECK(recorder.alpha[i].first == static_cast<std::int64_t>(i + 2));
      CHECK(relative_difference(recorder.alpha[i].second, expected.alpha[i]) < 1e-12);
    }
    CHECK(recorder.others.contains("lambda1") == (config.architecture == "resformer"));
    if (recorder.others.contains("lambda1")) CHECK(recorder.others.at("lambda1").sizes() == at::IntArrayRef({3}));
  }
}

TEST_CASE("wrong inputs are named", "[models]") {
  const auto model = random_model(small_config("transformer"), at::kFloat);
  const at::Tensor ids = at::zeros({2, 5}, at::kLong);
  CHECK_THROWS_WITH(model->hidden_states({at::zeros({5}, at::kLong), {}, {}}), Catch::Contains("input_ids"));
  CHECK_THROWS_WITH(model->hidden_states({ids.to(at::kInt), {}, {}}), Catch::Contains("input_ids must be int64"));
  CHECK_THROWS_WITH(model->hidden_states({ids, at::zeros({5}, at::kLong), {}}), Catch::Contains("positions"));
  CHECK_THROWS_WITH(model->hidden_states({ids, {}, at::zeros({2, 4}, at::kLong)}), Catch::Contains("document_ids"));
  CHECK_THROWS_WITH(model->loss({ids, {}, {}}, at::zeros({2, 4}, at::kLong)), Catch::Contains("targets"));
}

}  // namespace satformer
