// The plain path (training.fused false) against the fused one in whole models: values and every gradient of every
// configuration; and what the plain path alone can do: second derivatives, gradients of what lies between, the operator
// gated_value_mix itself.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "satformer/models/decoder.h"
#include "satformer/runtime/precision.h"
#include "tests/satformer/models/model_testing.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using models::LanguageModel;
using models::ModelConfig;
using models::ModelInput;
using namespace testing;

std::shared_ptr<LanguageModel> model_of(const ModelConfig& config, at::ScalarType dtype, bool fused) {
  auto model = random_model(config, dtype);
  model->set_fused(fused);
  return model;
}

struct Result {
  at::Tensor loss, hidden;
  std::map<std::string, at::Tensor> gradients;
};

Result run(LanguageModel& model, const ModelInput& input, std::optional<at::ScalarType> autocast = {}) {
  Result result;
  {
    std::optional<AutocastGuard> guard;
    if (autocast) guard.emplace(c10::Device(c10::kCPU), *autocast);
    result.loss = model.loss_sum(input, models::shift_labels(input.input_ids));
    const at::NoGradGuard no_grad;
    result.hidden = model.hidden_states(input);
  }
  result.loss.backward();
  for (const auto& item : model.named_parameters()) result.gradients[item.key()] = item.value().grad();
  return result;
}

// The largest difference of one gradient, of its largest number. The floor is for gradients that are 0 but for
// rounding.
double gradient_difference(const std::string& name, const at::Tensor& found, const at::Tensor& wanted) {
  const bool zero = !found.defined() || !wanted.defined();
  if (zero) {
    const at::Tensor& defined = found.defined() ? found : wanted;
    return defined.defined() ? defined.abs().sum().item<double>() : 0;
  }
  const double difference = (found - wanted).abs().max().item<double>();
  // One number each, a sum over all tokens and streams whose terms cancel: two digits less.
  const bool cancels = name.ends_with("dynamic_alpha_scale") || name.ends_with("dynamic_beta_scale");
  return difference / std::max(wanted.abs().max().item<double>(), 0.1) / (cancels ? 100 : 1);
}

void check_same(const Result& found, const Result& wanted, double value_tolerance, double gradient_tolerance) {
  CHECK(relative_difference(found.loss, wanted.loss) < value_tolerance);
  CHECK(relative_difference(found.hidden, wanted.hidden) < value_tolerance);
  for (const auto& [name, gradient] : wanted.gradients) {
    INFO(name);
    CHECK(gradient_difference(name, found.gradients.at(name), gradient) < gradient_tolerance);
  }
}

// Runs of an operator, without those inside another run of it (it passes several dispatch keys).
class CountCalls {
 public:
  explicit CountCalls(const char* name) {
    name_ = name;
    depth_ = count_ = 0;
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback(&enter, &leave).scopes({at::RecordScope::FUNCTION}));
  }
  ~CountCalls() { at::removeCallback(handle_); }
  CountCalls(const CountCalls&) = delete;
  CountCalls& operator=(const CountCalls&) = delete;
  int count() const { return count_; }

 private:
  static std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& call) {
    if (std::string_view(call.name()) == name_ && depth_++ == 0) ++count_;
    return nullptr;
  }
  static void leave(const at::RecordFunction& call, at::ObserverContext* /*context*/) {
    if (std::string_view(call.name()) == name_) --depth_;
  }

  static inline std::string_view name_;
  static inline int depth_ = 0, count_ = 0;
  at::CallbackHandle handle_{};
};

std::int64_t mixing_layers(const ModelConfig& config) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) count += config.mixes_values(i) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("the plain path gives what the fused one gives, in float64", "[models][plain]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    for (const ModelInput& input : {plain_input(config), document_input(config)}) {
      const Result wanted = run(*model_of(config, at::kDouble, true), input);
      check_same(run(*model_of(config, at::kDouble, false), input), wanted, 1e-12, 1e-12);
    }
  }
}

// Neither is exact: the plain path may be no farther from float64 than the fused one, but for the operators' tolerance.
TEST_CASE("the plain path gives what the fused one gives, in float32", "[models][plain]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    for (const ModelInput& input : {plain_input(config), document_input(config)}) {
      const Result exact = run(*model_of(config, at::kDouble, false), input);
      const Result fused = run(*model_of(config, at::kFloat, true), input);
      const Result plain = run(*model_of(config, at::kFloat, false), input);
      CHECK(relative_difference(plain.loss, exact.loss) < 1e-5);
      CHECK(relative_difference(plain.hidden, exact.hidden) <
            1e-5 + 3 * relative_difference(fused.hidden, exact.hidden));
      for (const auto& [name, wanted] : exact.gradients) {
        INFO(name);
        const double of_fused = gradient_difference(name, fused.gradients.at(name), wanted);
        CHECK(gradient_difference(name, plain.gradients.at(name), wanted) < 2e-4 + 3 * of_fused);
      }
    }
  }
}

// Rounding to 8 bits at each step of both. The plain path rounds scores and softmax as well, which the fused kernels
// keep in float32; some gradients are a handful of numbers.
TEST_CASE("the plain path under bfloat16 autocast", "[models][plain]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const ModelInput input = document_input(config);
    const Result exact = run(*model_of(config, at::kFloat, false), input);
    const Result fused = run(*model_of(config, at::kFloat, true), input, at::kBFloat16);
    const Result plain = run(*model_of(config, at::kFloat, false), input, at::kBFloat16);
    CHECK(plain.loss.scalar_type() == at::kFloat);
    CHECK(plain.hidden.scalar_type() == at::kBFloat16);
    CHECK(relative_difference(plain.loss, exact.loss) < 0.05);
    for (const auto& [name, wanted] : exact.gradients) {
      INFO(name);
      const at::Tensor &a = plain.gradients.at(name), &b = fused.gradients.at(name);
      if (!wanted.defined() || wanted.norm().item<double>() < 1e-3) continue;
      CHECK(a.scalar_type() == at::kFloat);
      const double of_plain = ((a - wanted).norm() / wanted.norm()).item<double>();
      const double of_fused = ((b - wanted).norm() / wanted.norm()).item<double>();
      CHECK(of_plain < 4 * of_fused + 0.25);
    }
  }
}

// v' H v for a random direction v, against the difference of the fused path's gradients along it.
TEST_CASE("the plain path has second derivatives", "[models][plain]") {
  constexpr double kStep = 1e-6;
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const ModelInput input = document_input(config);
    const at::Tensor targets = models::shift_labels(input.input_ids);
    const auto plain = model_of(config, at::kDouble, false), fused = model_of(config, at::kDouble, true);
    const std::vector<at::Tensor> parameters = plain->parameters(), moved = fused->parameters();
    std::vector<at::Tensor> direction;
    for (const auto& item : plain->named_parameters()) {
      direction.push_back(at::randn_like(item.value()).detach());
      // The lookup gives the pad row no gradient: differences would see what no derivative is to see.
      if (config.pad_token_id && item.key() == "model.embeddings.weight")
        direction.back()[*config.pad_token_id].zero_();
    }
    const auto along = [&](const std::vector<at::Tensor>& gradients) {
      at::Tensor sum = at::zeros({}, at::kDouble);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i].defined()) sum = sum + (gradients[i] * direction[i]).sum();
      }
      return sum;
    };
    const auto slope = [&](double step) {
      {
        const at::NoGradGuard no_grad;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i].copy_(parameters[i] + step * direction[i]);
      }
      return along(torch::autograd::grad({fused->loss_sum(input, targets)}, moved, {}, {}, false, true)).item<double>();
    };
    const auto gradients = torch::autograd::grad({plain->loss_sum(input, targets)}, parameters, {}, {},
                                                 /*create_graph=*/true, /*allow_unused=*/true);
    const double found =
        along(torch::autograd::grad({along(gradients)}, parameters, {}, {}, false, true)).item<double>();
    const double expected = (slope(kStep) - slope(-kStep)) / (2 * kStep);
    CHECK(found == Approx(expected).epsilon(1e-4).margin(1e-3));
  }
}

TEST_CASE("the fused path refuses second derivatives", "[models][plain]") {
  const ModelConfig config = small_config("satformer");
  const auto model = model_of(config, at::kDouble, true);
  const at::Tensor loss = model->hidden_states(plain_input(config)).sum();
  CHECK_THROWS_WITH(torch::autograd::grad({loss}, model->parameters(), {}, true, /*create_graph=*/true),
                    Catch::Contains("second derivatives are not implemented"));
}

TEST_CASE("a plain training step runs gated_value_mix once a mixing layer and pass", "[models][plain]") {
  for (const char* name : {"satformer", "resformer", "transformer"}) {
    for (const bool fused : {false, true}) {
      const ModelConfig config = small_config(name, {{"value_residual_last_k", 2}});
      const auto model = model_of(config, at::kFloat, fused);
      const ModelInput input = plain_input(config);
      const std::int64_t expected = !fused && config.architecture == "satformer" ? mixing_layers(config) : 0;
      INFO(name << (fused ? ", fused" : ", plain"));
      at::Tensor loss;
      {
        const CountCalls calls("satformer::gated_value_mix");
        loss = model->loss_sum(input, models::shift_labels(input.input_ids));
        CHECK(calls.count() == expected);
      }
      const CountCalls calls("satformer::gated_value_mix_backward");
      loss.backward();
      CHECK(calls.count() == expected);
    }
  }
}

namespace {

// Everything that a pass shows, in order.
struct Recorder : nn::Observer {
  void add(std::initializer_list<at::Tensor> tensors) { seen.insert(seen.end(), tensors.begin(), tensors.end()); }
  void hidden(std::int64_t /*layer*/, const at::Tensor& x) override { add({x}); }
  void gates(std::int64_t /*layer*/, const nn::GateObservation& x) override {
    add({x.logits, x.alpha, x.values, x.first_values});
    logits.push_back(x.logits);
  }
  void static_mix(std::int64_t /*layer*/, const nn::StaticMixObservation& x) override {
    add({x.lambda1, x.lambda2, x.values, x.first_values});
  }
  void depth_weights(std::int64_t /*layer*/, const nn::DepthWeightsObservation& x) override { add({x.weights}); }
  void hyper_connection(std::int64_t /*module*/, const nn::HyperConnectionObservation& x) override {
    add({x.alpha, x.beta});
  }
  void named(const std::string& /*name*/, const at::Tensor& x) override { add({x}); }
  std::vector<at::Tensor> seen, logits;
};

struct Halve : nn::Intervention {
  at::Tensor first_value_weights(std::int64_t layer, const at::Tensor& alpha) override {
    return layer == 2 ? at::Tensor() : 0.5 * alpha + 0.1;
  }
};

}  // namespace

TEST_CASE("observers see the same on both paths", "[models][plain]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const ModelInput input = document_input(config);
    Recorder fused, plain;
    model_of(config, at::kDouble, true)->hidden_states(input, &fused);
    model_of(config, at::kDouble, false)->hidden_states(input, &plain);
    REQUIRE(plain.seen.size() == fused.seen.size());
    for (std::size_t i = 0; i < plain.seen.size(); ++i) {
      REQUIRE(plain.seen[i].sizes() == fused.seen[i].sizes());
      CHECK(relative_difference(plain.seen[i], fused.seen[i]) < 1e-12);
    }
  }
}

TEST_CASE("what lies between has gradients and hooks on the plain path", "[models][plain]") {
  const ModelConfig config = small_config("satformer", {{"value_residual_gate", "sigmoid"}});
  const auto model = model_of(config, at::kDouble, false);
  const ModelInput input = plain_input(config);
  Recorder recorder;
  const at::Tensor loss = model->loss_sum(input, models::shift_labels(input.input_ids), &recorder);
  REQUIRE(recorder.logits.size() == 3);
  std::vector<at::Tensor> hooked;
  for (const at::Tensor& logits : recorder.logits) {
    logits.register_hook([&hooked](const at::Tensor& gradient) { hooked.push_back(gradient); });
  }
  const auto gradients = torch::autograd::grad({loss}, recorder.logits);
  REQUIRE(hooked.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {  // the last layer's come first
    CHECK(at::equal(hooked[i], gradients[2 - i]));
    CHECK(gradients[i].abs().max().item<double>() > 0);
  }
}

TEST_CASE("interventions do the same on both paths", "[models][plain]") {
  const at::NoGradGuard no_grad;
  for (const NamedConfig& item : configurations()) {
    const ModelConfig config = small_config(item.architecture, item.keys);
    if (mixing_layers(config) == 0) continue;
    INFO(item.name);
    std::vector<at::Tensor> results;
    for (const bool fused : {true, false}) {
      const auto model = model_of(config, at::kDouble, fused);
      auto& decoder = dynamic_cast<models::ResidualDecoder&>(*model);
      Halve intervention;
      models::DecoderPass pass = decoder.begin(document_input(config));
      while (pass.layer < config.num_hidden_layers) decoder.advance(pass, nullptr, &intervention);
      results.push_back(decoder.finish(pass));
    }
    CHECK(relative_difference(results[1], results[0]) < 1e-12);
  }
}

TEST_CASE("activation checkpointing changes no bit of the plain path", "[models][plain][checkpointing]") {
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const auto kept = model_of(config, at::kFloat, false), again = model_of(config, at::kFloat, false);
    again->set_activation_checkpointing(true);
    const Result wanted = run(*kept, document_input(config)), found = run(*again, document_input(config));
    CHECK(at::equal(found.loss, wanted.loss));
    for (const auto& [name, gradient] : wanted.gradients) {
      INFO(name);
      REQUIRE(found.gradients.at(name).defined() == gradient.defined());
      if (gradient.defined()) CHECK(gradient_difference(name, found.gradients.at(name), gradient) < 1e-5);
    }
  }
}

}  // namespace satformer
