#include "satformer/optim/adamw.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <utility>
#include <vector>

#include "satformer/core/error.h"
#include "tests/catch.h"

namespace {

using namespace satformer::optim;
using Catch::Matchers::Contains;

at::Tensor parameter(at::IntArrayRef sizes) { return at::randn(sizes).set_requires_grad(true); }

// One parameter entry, in float64, by the formula of the header.
struct Reference {
  double p, m = 0.0, v = 0.0;

  void step(double g, std::int64_t t, double lr, double decay, const AdamWOptions& o) {
    p *= 1.0 - lr * decay;
    m = o.beta1 * m + (1.0 - o.beta1) * g;
    v = o.beta2 * v + (1.0 - o.beta2) * g * g;
    const double m_hat = m / (1.0 - std::pow(o.beta1, static_cast<double>(t)));
    const double v_hat = v / (1.0 - std::pow(o.beta2, static_cast<double>(t)));
    p -= lr * m_hat / (std::sqrt(v_hat) + o.eps);
  }
};

AdamW two_group_optimizer(const at::Tensor& a, const at::Tensor& b) {
  return AdamW({{"decay", 0.1, {{"a", a}}}, {"no decay", 0.0, {{"b", b}}}}, {});
}

}  // namespace

TEST_CASE("AdamW follows its formula in both groups", "[optim]") {
  const at::Tensor a = parameter({3, 5}), b = parameter({7});
  AdamW optimizer = two_group_optimizer(a, b);
  std::vector<std::vector<Reference>> references(2);
  const at::Tensor tensors[] = {a, b};
  for (int i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < tensors[i].numel(); ++j) {
      references[i].push_back({tensors[i].data_ptr<float>()[j]});
    }
  }
  for (std::int64_t t = 1; t <= 20; ++t) {
    const double lr = 1e-2 / static_cast<double>(t);
    for (int i = 0; i < 2; ++i) {
      tensors[i].mutable_grad() = at::randn(tensors[i].sizes());
      for (std::int64_t j = 0; j < tensors[i].numel(); ++j) {
        const float gradient = tensors[i].grad().data_ptr<float>()[j] * (t % 2 == 0 ? 0.25f : 1.0f);
        references[i][j].step(gradient, t, lr, i == 0 ? 0.1 : 0.0, {});
      }
    }
    optimizer.step(lr, t % 2 == 0 ? 0.25 : 1.0);
  }
  for (int i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < tensors[i].numel(); ++j) {
      CHECK(tensors[i].data_ptr<float>()[j] == Approx(references[i][j].p).epsilon(1e-5).margin(1e-6));
    }
  }
  CHECK(optimizer.state().at("step.a").item<float>() == 20.0f);
}

TEST_CASE("AdamW leaves a parameter without a gradient alone", "[optim]") {
  const at::Tensor a = parameter({4}), b = parameter({4});
  AdamW optimizer = two_group_optimizer(a, b);
  const at::Tensor before = a.detach().clone();
  b.mutable_grad() = at::full({4}, 1.0);
  optimizer.step(0.1);
  CHECK(at::equal(a, before));
  CHECK(optimizer.state().at("step.a").item<float>() == 0.0f);
  CHECK(optimizer.gradients().size() == 1);
  optimizer.zero_grad();
  CHECK(optimizer.gradients().empty());
}

TEST_CASE("AdamW leaves the gradients as they are", "[optim]") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const at::Tensor a = at::randn({70}).to(dtype).set_requires_grad(true), before = a.detach().clone();
    a.mutable_grad() = at::randn({70}).to(dtype);
    const at::Tensor gradient = a.grad().clone();
    AdamW optimizer({{"", 0.0, {{"a", a}}}}, {});
    optimizer.step(1e-2, 1.0 / 3);
    CHECK(at::equal(a.grad(), gradient));
    CHECK_FALSE(at::equal(a, before));
    CHECK(optimizer.state().at("exp_avg.a").scalar_type() == dtype);
  }
}

TEST_CASE("AdamW counts the steps of each parameter", "[optim]") {
  const at::Tensor a = parameter({4}), b = parameter({4});
  AdamW optimizer({{"", 0.0, {{"a", a}, {"b", b}}}}, {});
  for (int i = 0; i < 3; ++i) {
    a.mutable_grad() = at::full({4}, 1.0);
    if (i == 1) b.mutable_grad() = at::full({4}, 1.0);
    optimizer.step(0.0);
    optimizer.zero_grad();
  }
  auto state = optimizer.state();
  CHECK(state.at("step.a").item<float>() == 3.0f);
  CHECK(state.at("step.b").item<float>() == 1.0f);
  CHECK((state.at("step.a").scalar_type() == at::kFloat && state.at("step.a").dim() == 0));

  state["step.a"] = at::full({}, 7.0f);
  optimizer.load_state(state, "o.safetensors");
  CHECK(optimizer.state().at("step.a").item<float>() == 7.0f);
  for (const double bad : {-1.0, 1.5, std::nan(""), HUGE_VAL}) {
    state["step.b"] = at::full({}, bad, at::kFloat);
    CHECK_THROWS_WITH(optimizer.load_state(state, "o.safetensors"),
                      Contains("o.safetensors: step.b is ") && Contains("expected a number of steps"));
  }
  CHECK(optimizer.state().at("step.b").item<float>() == 1.0f);
}

TEST_CASE("AdamW's state moves to another optimiser bit for bit", "[optim]") {
  const at::Tensor a = parameter({6, 6}), b = parameter({6});
  AdamW first = two_group_optimizer(a, b);
  const auto step = [](AdamW& optimizer, const at::Tensor& x, const at::Tensor& y, double value) {
    x.mutable_grad() = at::full(x.sizes(), value);
    y.mutable_grad() = at::full(y.sizes(), -value);
    optimizer.step(1e-3);
  };
  for (int i = 1; i < 4; ++i) step(first, a, b, i);

  const at::Tensor a2 = a.detach().clone().set_requires_grad(true), b2 = b.detach().clone().set_requires_grad(true);
  AdamW second = two_group_optimizer(a2, b2);
  second.load_state(first.state(), "test");
  step(first, a, b, 0.3);
  step(second, a2, b2, 0.3);
  CHECK(at::equal(a, a2));
  CHECK(at::equal(b, b2));
}

TEST_CASE("AdamW names every tensor of a state that does not fit", "[optim]") {
  const at::Tensor a = parameter({2}), b = parameter({2});
  AdamW optimizer = two_group_optimizer(a, b);
  auto state = AdamW({{"", 0.0, {{"a", parameter({3})}, {"c", parameter({1})}}}}, {}).state();
  state["step.a"] = state["step.a"].to(at::kDouble);
  const at::Tensor before = optimizer.state().at("exp_avg.a").clone();
  CHECK_THROWS_WITH(optimizer.load_state(state, "o.safetensors"),
                    Contains("o.safetensors: ") && Contains("exp_avg.a is Float [3], expected Float [2]") &&
                        Contains("exp_avg.b is missing") && Contains("step.a is Double [], expected Float []") &&
                        Contains("exp_avg.c Float [1] is not expected"));
  CHECK(at::equal(optimizer.state().at("exp_avg.a"), before));
}

TEST_CASE("AdamW rejects two parameters of one name and integer parameters", "[optim]") {
  const at::Tensor a = parameter({2});
  CHECK_THROWS_WITH(AdamW({{"", 0.0, {{"x", a}, {"x", a}}}}, {}), Contains("two parameters are named x"));
  CHECK_THROWS_WITH(AdamW({{"", 0.0, {{"n", at::empty({2}, at::kLong)}}}}, {}), Contains("n is Long"));
}

TEST_CASE("AdamW for parts of the elements, wherever they are cut, is AdamW for all bit for bit", "[optim]") {
  const auto copy = [](const at::Tensor& tensor) { return tensor.detach().clone().set_requires_grad(true); };
  const at::Tensor a = parameter({3, 5}), b = parameter({7});
  AdamW whole = two_group_optimizer(a, b);
  for (const std::int64_t cut : {0, 1, 8, 15, 18, 22}) {
    const at::Tensor first_a = copy(a), first_b = copy(b);
    AdamW reference = two_group_optimizer(first_a, first_b);
    reference.load_state(whole.state(), "test");
    const at::Tensor parts_a = copy(a), parts_b = copy(b);
    const std::vector<ParameterGroup> groups = {{"decay", 0.1, {{"a", parts_a}}}, {"no decay", 0.0, {{"b", parts_b}}}};
    AdamW low(groups, {}, satformer::Range{0, cut}), high(groups, {}, satformer::Range{cut, 22});
    low.load_state(whole.state(), "test");
    high.load_state(whole.state(), "test");
    for (int t = 0; t < 3; ++t) {
      for (const auto& [one, other] : {std::pair(first_a, parts_a), std::pair(first_b, parts_b)}) {
        one.mutable_grad() = at::randn(one.sizes());
        other.mutable_grad() = one.grad().clone();
      }
      reference.step(0.1, 0.5);
      low.step(0.1, 0.5);
      high.step(0.1, 0.5);
    }
    INFO("cut at " << cut);
    CHECK(at::equal(first_a, parts_a));
    CHECK(at::equal(first_b, parts_b));
    std::int64_t held = 0;
    for (const AdamW* part : {&low, &high}) {
      for (const at::Tensor& moment : part->exp_avgs()) held += moment.numel();
      CHECK(at::equal(part->steps().at("step.b"), reference.steps().at("step.b")));
    }
    CHECK(held == 22);
  }
  const std::vector<ParameterGroup> groups = {{"decay", 0.1, {{"a", a}}}};
  CHECK_THROWS_WITH(AdamW(groups, {}, satformer::Range{3, 16}), Contains("elements 3 to 16 are not among"));
  AdamW part(groups, {}, satformer::Range{3, 9});
  CHECK_THROWS_WITH(part.state(), Contains("elements 3 to 9 alone"));
  auto state = AdamW(groups, {}).state();
  state["exp_avg.a"] = at::empty({5, 3});
  CHECK_THROWS_WITH(part.load_state(state, "o"), Contains("exp_avg.a is Float [5, 3], expected Float [3, 5]"));
}
