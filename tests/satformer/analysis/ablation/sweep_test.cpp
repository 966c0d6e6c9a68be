#include "satformer/analysis/ablation/sweep.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <numeric>

#include "satformer/analysis/ablation/calibration.h"
#include "satformer/core/error.h"
#include "satformer/models/decoder.h"
#include "tests/satformer/analysis/support.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;
using Catch::Matchers::Contains;

const std::vector<std::string> kFiveLayers{"num_hidden_layers=5"};

void set(TinyStudy& study, const std::string& name, double value) {
  const at::NoGradGuard no_grad;
  study.model->named_parameters()[name].fill_(value);
}

std::string gate_of(std::int64_t layer, const char* part) {
  return "model.layers." + std::to_string(layer) + ".attn.value_residual_mixing.alpha_proj." + part;
}

// The gates of `layers` layers: bias alone, if there is one.
void close_gates(TinyStudy& study, std::int64_t layers, double bias = 0.0) {
  for (std::int64_t layer = 1; layer < layers; ++layer) {
    set(study, gate_of(layer, "weight"), 0.0);
    if (bias != 0.0) set(study, gate_of(layer, "bias"), bias);
  }
}

Ablation run(TinyStudy& study, AblationScope scope, const InterventionRule& rule, bool reuse = true) {
  const TokenStream stream = study.stream();
  std::optional<GateMeans> means;
  if (rule.mode == InterventionMode::mean || rule.mode == InterventionMode::token_mean) {
    means = calibrate_gates(*study.model, stream, rule.mode == InterventionMode::token_mean);
  }
  return ablate(*study.model, stream, selections(study.model->config(), scope, nullptr), means ? &*means : nullptr,
                {.rule = rule, .reuse = reuse});
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

TEST_CASE("gates replaced by zero are a model whose gates never open", "[analysis][ablation]") {
  for (const char* gate : {"relu", "tanh", "identity"}) {
    CAPTURE(gate);
    TinyStudy study({std::string("value_residual_gate=\"") + gate + "\""});
    const Ablation ablation = run(study, AblationScope::all, {.mode = InterventionMode::zero});
    CHECK(ablation.losses[0] != ablation.intact);
    close_gates(study, 3);
    const Ablation closed = run(study, AblationScope::all, {.mode = InterventionMode::scale, .scale = 1.0});
    CHECK(ablation.losses[0] == closed.intact);
    CHECK(closed.losses[0] == closed.intact);
  }
}

TEST_CASE("a gate that is the same everywhere is its own mean", "[analysis][ablation]") {
  for (const char* gate : {"relu", "sigmoid", "softmax", "softmax_sigmoid", "tanh", "identity"}) {
    TinyStudy study({std::string("value_residual_gate=\"") + gate + "\"", "value_residual_proj_bias=true"});
    close_gates(study, 3, 0.3);
    for (const InterventionMode mode :
         {InterventionMode::mean, InterventionMode::token_mean, InterventionMode::shuffle, InterventionMode::scale}) {
      CAPTURE(gate, mode_name(mode));
      const Ablation ablation = run(study, AblationScope::head, {.mode = mode, .scale = 1.0});
      for (const std::vector<double>& losses : ablation.losses) CHECK(losses == ablation.intact);
    }
  }
}

TEST_CASE("an ablated head is a model without that head's gate", "[analysis][ablation]") {
  TinyStudy study(kFiveLayers);
  const Ablation ablation = run(study, AblationScope::head, {.mode = InterventionMode::zero});
  const Ablation layers = run(study, AblationScope::layer, {.mode = InterventionMode::zero});
  REQUIRE(ablation.selections.size() == 8);
  REQUIRE(layers.selections.size() == 4);
  for (std::size_t i = 0; i < 8; ++i) {
    TinyStudy other(kFiveLayers);
    const GateSelection& selection = ablation.selections[i];
    {
      const at::NoGradGuard no_grad;
      other.model->named_parameters()[gate_of(*selection.layer, "weight")][*selection.head].zero_();
    }
    CAPTURE(*selection.layer, *selection.head);
    CHECK(ablation.losses[i] == run(other, AblationScope::all, {.mode = InterventionMode::zero}).intact);
    CHECK(ablation.losses[i] != ablation.intact);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    TinyStudy other(kFiveLayers);
    set(other, gate_of(*layers.selections[i].layer, "weight"), 0.0);
    CHECK(layers.losses[i] == run(other, AblationScope::all, {.mode = InterventionMode::zero}).intact);
  }
}

TEST_CASE("a sweep that reuses states gives the numbers of whole passes", "[analysis][ablation]") {
  for (const InterventionMode mode : {InterventionMode::zero, InterventionMode::mean, InterventionMode::token_mean,
                                      InterventionMode::shuffle, InterventionMode::scale}) {
    TinyStudy study(kFiveLayers);
    const InterventionRule rule{.mode = mode, .scale = -2.0, .seed = 3};
    const Ablation reused = run(study, AblationScope::head, rule), whole = run(study, AblationScope::head, rule, false);
    CAPTURE(mode_name(mode));
    CHECK(reused.intact == whole.intact);
    CHECK(reused.losses == whole.losses);
    CHECK(reused.losses[0] != reused.intact);
  }
}

TEST_CASE("an ablation does not depend on how many windows run together", "[analysis][ablation]") {
  for (const InterventionMode mode : {InterventionMode::token_mean, InterventionMode::shuffle}) {
    TinyStudy study;
    study.options.max_blocks = 4;
    const InterventionRule rule{.mode = mode, .seed = 9};
    const Ablation whole = run(study, AblationScope::head, rule);
    REQUIRE(whole.targets.size() == 4);
    CHECK(sum(whole.targets) == 499);
    for (const std::int64_t sequences : {1, 5}) {
      study.options.sequences = sequences;
      const Ablation parts = run(study, AblationScope::head, rule);
      CHECK(parts.targets == whole.targets);
      for (std::size_t i = 0; i < whole.losses.size(); ++i) {
        for (std::size_t b = 0; b < 4; ++b) CHECK(parts.losses[i][b] == Approx(whole.losses[i][b]).epsilon(1e-6));
      }
    }
    InterventionRule other = rule;
    other.seed = 10;
    const bool same = run(study, AblationScope::head, other).losses == run(study, AblationScope::head, rule).losses;
    CHECK(same == (mode == InterventionMode::token_mean));
  }
}

TEST_CASE("the intact loss of an ablation is that of eval", "[analysis][ablation]") {
  TinyStudy study;
  const Ablation ablation = run(study, AblationScope::all, {.mode = InterventionMode::zero});
  eval::EvaluationOptions options;
  options.batch = study.options.batch;
  const eval::LossTotal evaluation = eval::evaluate(*study.model, study.dataset, options);
  CHECK(sum(ablation.targets) == static_cast<double>(evaluation.num_targets));
  CHECK(sum(ablation.intact) == Approx(evaluation.loss_sum).epsilon(1e-6));
}

TEST_CASE("a ResFormer's lambdas are replaced like gates", "[analysis][ablation]") {
  TinyStudy study({"model.architecture=\"resformer\"", "num_hidden_layers=5"});
  {
    const at::NoGradGuard no_grad;
    study.model->named_parameters()["model.lambda_manager.lambda_logits"].copy_(at::tensor({0.5, -1.0, 0.2, 0.9}));
  }
  const Ablation zero = run(study, AblationScope::layer, {.mode = InterventionMode::zero});
  const Ablation all = run(study, AblationScope::all, {.mode = InterventionMode::zero});
  const Ablation heads = run(study, AblationScope::head, {.mode = InterventionMode::zero});
  const Ablation same = run(study, AblationScope::all, {.mode = InterventionMode::scale, .scale = 1.0});
  const Ablation mean = run(study, AblationScope::all, {.mode = InterventionMode::mean});
  CHECK(zero.losses.size() == 4);
  CHECK(heads.losses.size() == 8);
  CHECK(sum(same.losses[0]) == Approx(sum(same.intact)).epsilon(1e-6));
  CHECK(std::abs(sum(mean.losses[0]) - sum(mean.intact)) > 1e-4);
  // All lambdas alike: lambda1 is 1 in each of the four layers, or 4 / 5 of a scale of 4.
  set(study, "model.lambda_manager.lambda_logits", 0.0);
  const Ablation flat = run(study, AblationScope::all, {.mode = InterventionMode::scale, .scale = 1.0});
  CHECK(sum(mean.losses[0]) == Approx(sum(flat.intact)).epsilon(1e-6));
  set(study, "model.lambda_manager.lambda_scale", 0.0);
  const Ablation without = run(study, AblationScope::all, {.mode = InterventionMode::mean});
  CHECK(sum(all.losses[0]) == Approx(sum(without.intact)).epsilon(1e-6));
  CHECK(sum(all.losses[0]) != sum(all.intact));
}

TEST_CASE("an intact model whose loss is not finite cannot be ablated", "[analysis][ablation]") {
  TinyStudy study;
  set(study, gate_of(1, "weight"), NAN);
  CHECK_THROWS_WITH(run(study, AblationScope::all, {.mode = InterventionMode::zero}), Contains("is not finite"));
}

TEST_CASE("what cannot be ablated is told", "[analysis][ablation]") {
  TinyStudy plain({"model.architecture=\"transformer\""}), fixed({"model.architecture=\"resformer\""}),
      dense({"model.architecture=\"denseformer\""});
  CHECK_THROWS_WITH(selections(plain.model->config(), AblationScope::all, nullptr), Contains("in no layer"));
  CHECK_THROWS_WITH(selections(fixed.model->config(), AblationScope::category, nullptr), Contains("tokenizer"));
  CHECK_THROWS_WITH(run(fixed, AblationScope::all, {.mode = InterventionMode::shuffle}),
                    Contains("the same for every token"));
  CHECK_THROWS_WITH(ablate(*dense.model, dense.stream(), {GateSelection{}}, nullptr, {}), Contains("denseformer"));
  CHECK_THROWS_WITH(GateIntervention({.mode = InterventionMode::mean}, nullptr, nullptr), Contains("needs means"));
  TinyStudy study;
  auto& decoder = dynamic_cast<models::ResidualDecoder&>(*study.model);
  GateIntervention intervention({.mode = InterventionMode::zero}, nullptr, nullptr);
  models::DecoderPass pass = decoder.begin({.input_ids = at::arange(8, at::kLong).unsqueeze(0)});
  decoder.advance(pass, nullptr, &intervention);
  CHECK_THROWS_WITH(decoder.advance(pass, nullptr, &intervention), Contains("without gradients only"));
  CHECK_THROWS_WITH(decoder.finish(pass), Contains("not before layer"));
}
