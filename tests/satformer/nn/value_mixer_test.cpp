// What a mixer says of its mix, and what observers and interventions see of it.
#include "satformer/nn/value_mixer.h"

#include <ATen/ATen.h>

#include "tests/catch.h"

namespace satformer::nn {
namespace {

ValueResidual residual_of(at::ScalarType dtype, const at::Tensor& lambda1 = {}) {
  return {at::randn({2, 3, 4, 6}).to(dtype), lambda1};
}

struct Recorder : Observer, Intervention {
  void gates(std::int64_t layer, const GateObservation& seen) override { layers.push_back(layer), alpha = seen.alpha; }
  void static_mix(std::int64_t layer, const StaticMixObservation& seen) override {
    layers.push_back(layer), alpha = seen.lambda1;
  }
  at::Tensor first_value_weights(std::int64_t layer, const at::Tensor& given) override {
    layers.push_back(layer), alpha = given;
    return answer;
  }
  std::vector<std::int64_t> layers;
  at::Tensor alpha, answer;
};

}  // namespace

TEST_CASE("a mixer says what mix it is", "[nn]") {
  const at::Tensor lambda1 = at::full({}, 0.25);
  StaticMixer learnable(StaticMixOptions{0.7}, at::TensorOptions());
  const MixSpec own = learnable->spec(residual_of(at::kFloat, lambda1));
  CHECK_FALSE(own.gate);
  CHECK(own.lambda1.is_same(lambda1));
  CHECK(own.lambda2.is_same(learnable->lambda2));
  CHECK(own.lambda2.item<float>() == 0.7F);
  CHECK_THROWS_WITH(learnable->spec(residual_of(at::kFloat)), Catch::Contains("lambda1"));
  CHECK_FALSE(learnable->gate_projection());

  FixedMixer fixed(FixedMixOptions{2.0, 1.0});
  for (const auto& [values, lambdas] :
       {std::pair{at::kBFloat16, at::kFloat}, std::pair{at::kFloat, at::kFloat}, std::pair{at::kDouble, at::kDouble}}) {
    const MixSpec spec = fixed->spec(residual_of(values));
    CHECK_FALSE(spec.gate);
    CHECK(spec.lambda1.scalar_type() == lambdas);
    CHECK(spec.lambda1.item<double>() == 2.0);
    CHECK(spec.lambda2.item<double>() == 1.0);
  }
  CHECK(fixed->parameters().empty());

  SelectiveMixer selective(SelectiveMixOptions{8, 4, Gate::kTanh, true}, at::TensorOptions());
  const MixSpec gated = selective->spec(residual_of(at::kFloat));
  CHECK(gated.gate == Gate::kTanh);
  CHECK_FALSE(gated.lambda1.defined());
  CHECK(selective->gate_projection()->weight.sizes() == at::IntArrayRef({4, 8}));
  CHECK(selective->gate_projection()->bias.sizes() == at::IntArrayRef({4}));
}

TEST_CASE("observers and interventions see a mix", "[nn]") {
  const at::NoGradGuard no_grad;
  const at::Tensor v = at::randn({2, 3, 4, 6}), v1 = at::randn({2, 3, 4, 6}), logits = at::randn({2, 3, 4});
  Recorder recorder;
  LayerContext context{.attention = {}, .layer = 5};
  const MixSpec selective{.gate = Gate::kSigmoid};
  const RunningMix mix{selective, logits, v, v1};
  show_mix(context, mix);
  CHECK_FALSE(intervened_weights(context, mix).defined());
  CHECK(recorder.layers.empty());

  context.observer = &recorder;
  show_mix(context, mix);
  CHECK(at::equal(recorder.alpha, at::sigmoid(logits)));
  context.intervention = &recorder;
  CHECK_FALSE(intervened_weights(context, mix).defined());  // it leaves alpha
  CHECK(at::equal(recorder.alpha, at::sigmoid(logits)));
  recorder.answer = at::zeros_like(logits);
  CHECK(intervened_weights(context, mix).is_same(recorder.answer));

  const MixSpec fixed{.lambda1 = at::full({}, 0.5), .lambda2 = at::full({}, 2.0)};
  const RunningMix static_mix{fixed, {}, v, v1};
  show_mix(context, static_mix);
  CHECK(recorder.alpha.is_same(fixed.lambda1));
  intervened_weights(context, static_mix);
  CHECK(at::equal(recorder.alpha, at::full({2, 3, 4}, 0.5)));
  CHECK(recorder.layers == std::vector<std::int64_t>(5, 5));

  const at::AutoGradMode with_gradients(true);
  CHECK_THROWS_WITH(intervened_weights(context, mix), Catch::Contains("without gradients only"));
}

}  // namespace satformer::nn
