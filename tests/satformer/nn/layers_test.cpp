// Norm, rotary positions, masks, cross-entropy, initialisation: against formulas written out here, and numerically.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>

#include "satformer/nn/attention_context.h"
#include "satformer/nn/cross_entropy.h"
#include "satformer/nn/rms_norm.h"
#include "satformer/nn/rotary.h"

#include "tests/catch.h"

namespace satformer {
namespace {

at::Tensor expected_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x / ((x * x).mean(-1, true) + eps).sqrt() * weight;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

// The gradient of sum(function(x) * weights) by central differences, in float64.
at::Tensor numeric_gradient(const std::function<at::Tensor()>& value, const at::Tensor& x) {
  constexpr double kStep = 1e-6;
  const at::NoGradGuard no_grad;
  at::Tensor gradient = at::empty_like(x);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    at::Tensor entry = x.view(-1)[i];
    const auto original = entry.item<double>();
    entry.fill_(original + kStep);
    const auto above = value().item<double>();
    entry.fill_(original - kStep);
    const auto below = value().item<double>();
    entry.fill_(original);
    gradient.view(-1)[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

}  // namespace

TEST_CASE("rms_norm is its formula", "[nn]") {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{7}, {2, 3, 5}, {2, 3, 4, 16}, {0, 8}}) {
      const at::Tensor x = at::randn(shape, dtype).requires_grad_(true);
      const at::Tensor weight = at::randn({shape.back()}, dtype).requires_grad_(true);
      const at::Tensor gradient = at::randn(shape, dtype);
      const at::Tensor y = nn::rms_norm(x, weight, 1e-3), expected = expected_norm(x, weight, 1e-3);
      CHECK(y.scalar_type() == dtype);
      const double tolerance = dtype == at::kDouble ? 1e-12 : 1e-5;
      CHECK(largest_difference(y, expected) < tolerance);
      const auto found = torch::autograd::grad({y}, {x, weight}, {gradient});
      const auto wanted = torch::autograd::grad({expected}, {x, weight}, {gradient});
      CHECK(largest_difference(found[0], wanted[0]) < tolerance);
      CHECK(largest_difference(found[1], wanted[1]) < tolerance);
    }
  }
  CHECK_THROWS_WITH(nn::rms_norm(at::ones({2, 3}), at::ones({4}), 0), Catch::Contains("weight"));
}

TEST_CASE("rms_norm's gradient is the numeric one", "[nn]") {
  const at::Tensor x = at::randn({3, 5}, at::kDouble), weight = at::randn({5}, at::kDouble);
  const at::Tensor gradient = at::randn({3, 5}, at::kDouble);
  const auto value = [&] { return (nn::rms_norm(x, weight, 0.01) * gradient).sum(); };
  const at::Tensor numeric_x = numeric_gradient(value, x), numeric_weight = numeric_gradient(value, weight);
  x.requires_grad_(true), weight.requires_grad_(true);
  const auto found = torch::autograd::grad({value()}, {x, weight});
  CHECK(largest_difference(found[0], numeric_x) < 1e-8);
  CHECK(largest_difference(found[1], numeric_weight) < 1e-8);
}

TEST_CASE("rms_norm of bfloat16 accumulates in float32", "[nn]") {
  const at::Tensor x = at::randn({4, 4096}).to(at::kBFloat16), weight = at::ones({4096});
  const at::Tensor y = nn::rms_norm(x, weight, 1e-6);
  CHECK(y.scalar_type() == at::kBFloat16);
  // One rounding at the end: half a unit in the last place of 8 bits.
  const at::Tensor exact = expected_norm(x.to(at::kDouble), weight.to(at::kDouble), 1e-6);
  CHECK(((y.to(at::kDouble) - exact).abs() / exact.abs().clamp_min(1e-3)).max().item<double>() < 1.01 / 256);
}

TEST_CASE("under autocast rms_norm gives what the projections read", "[nn]") {
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const at::Tensor x = at::randn({2, 8}).requires_grad_(true), weight = at::ones({8}).requires_grad_(true);
  const at::Tensor y = nn::rms_norm(x, weight, 1e-6);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  CHECK(y.scalar_type() == at::kBFloat16);
  y.sum().backward();
  CHECK(x.grad().scalar_type() == at::kFloat);
  CHECK(weight.grad().scalar_type() == at::kFloat);
}

TEST_CASE("rotary tables are angles by position and frequency", "[nn]") {
  const std::int64_t hd = 6;
  const at::Tensor positions = at::tensor({0, 1, 5, 100000}, at::kLong);
  const nn::RotaryTables tables = nn::make_rotary_tables(positions, hd, 500.0, at::kDouble);
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t j = 0; j < hd / 2; ++j) {
      const double angle = positions[t].item<double>() * std::pow(500.0, -2.0 * static_cast<double>(j) / hd);
      const double tolerance = 1e-9;  // at position 100000
      CHECK(std::abs(tables.cos[t][0][j].item<double>() - std::cos(angle)) < tolerance);
      CHECK(std::abs(tables.sin[t][0][j].item<double>() - std::sin(angle)) < tolerance);
    }
  }
  CHECK_THROWS_WITH(nn::make_rotary_tables(positions, 5, 1e4, at::kFloat), Catch::Contains("head_dim must be even"));
}

TEST_CASE("float32 rotary tables are rounded float64 ones", "[nn]") {
  const at::Tensor positions = at::arange(4096);
  const auto single = nn::make_rotary_tables(positions, 64, 1e4, at::kFloat);
  const auto exact = nn::make_rotary_tables(positions, 64, 1e4, at::kDouble);
  CHECK(at::equal(single.cos, exact.cos.to(at::kFloat)));
  CHECK(at::equal(single.sin, exact.sin.to(at::kFloat)));
  const at::Tensor rows = at::stack({positions.slice(0, 0, 5), positions.slice(0, 7, 12)});
  const auto batched = nn::make_rotary_tables(rows, 64, 1e4, at::kFloat);
  CHECK(batched.cos.sizes() == at::IntArrayRef({2, 5, 1, 32}));
  CHECK(at::equal(batched.cos[1], single.cos.slice(0, 7, 12)));
}

TEST_CASE("documents of any length", "[nn]") {
  const auto ids = [](std::vector<std::int64_t> values, std::int64_t rows) {
    const auto length = static_cast<std::int64_t>(values.size()) / rows;
    return at::tensor(values, at::kLong).view({rows, length});
  };
  const auto found = nn::find_documents(ids({0, 0, 1, 1, 1, 2, /**/ 0, 0, 0, 0, 3, 3}, 2));
  REQUIRE(found);
  CHECK(at::equal(found->offsets, at::tensor({0, 2, 5, 6, 10, 12}, at::kInt)));
  CHECK(found->longest == 4);
  // The same id at the end of one row and the start of the next: two documents.
  const auto adjacent = nn::find_documents(ids({0, 1, /**/ 1, 1}, 2));
  REQUIRE(adjacent);
  CHECK(at::equal(adjacent->offsets, at::tensor({0, 1, 2, 4}, at::kInt)));
  CHECK_FALSE(nn::find_documents(ids({0, 1, 0, 0}, 1)));
  const auto one = nn::find_documents(ids({7}, 1)), none = nn::find_documents(at::zeros({2, 0}, at::kLong));
  CHECK(at::equal(one->offsets, at::tensor({0, 1}, at::kInt)));
  CHECK(at::equal(none->offsets, at::tensor({0}, at::kInt)));
  CHECK(none->longest == 0);
}

TEST_CASE("masks", "[nn]") {
  const at::Tensor hidden = at::zeros({2, 6, 8});
  const auto mask = [&](std::optional<std::int64_t> window, const at::Tensor& documents) {
    return nn::make_attention_context(hidden, {}, documents, {.head_dim = 4, .rope_theta = 1e4, .window_size = window})
        .mask;
  };
  CHECK_FALSE(mask(std::nullopt, {}).defined());
  CHECK_FALSE(mask(6, {}).defined());  // as wide as the sequence: causal and nothing else
  const at::Tensor window = mask(2, {});
  REQUIRE(window.sizes() == at::IntArrayRef({6, 6}));
  const at::Tensor documents = at::tensor({0, 0, 0, 1, 1, 1, 4, 4, 4, 4, 4, 2}, at::kLong).view({2, 6});
  const at::Tensor both = mask(2, documents);
  REQUIRE(both.sizes() == at::IntArrayRef({2, 1, 6, 6}));
  for (std::int64_t t = 0; t < 6; ++t) {
    for (std::int64_t s = 0; s < 6; ++s) {
      const bool near = s <= t && t - s < 2;
      CHECK((window[t][s].item<double>() == 0) == near);
      for (std::int64_t b = 0; b < 2; ++b) {
        const bool together = documents[b][t].item<std::int64_t>() == documents[b][s].item<std::int64_t>();
        const auto value = both[b][0][t][s].item<double>();
        CHECK((value == 0) == (near && together));
        CHECK((value == 0 || value == -std::numeric_limits<double>::infinity()));
      }
    }
  }
}

TEST_CASE("cross-entropy is its formula", "[nn]") {
  const at::Tensor hidden = (at::randn({2, 3, 5}, at::kDouble) * 2).requires_grad_(true);
  const at::Tensor weight = at::randn({7, 5}, at::kDouble).requires_grad_(true);
  at::Tensor targets = at::randint(0, 7, {2, 3}, at::kLong);
  targets[1][1] = nn::kIgnoreIndex;
  const at::Tensor loss = nn::linear_cross_entropy_sum(hidden, weight, targets);
  const at::Tensor logits = hidden.matmul(weight.t());
  at::Tensor expected = at::zeros({}, at::kDouble);
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t t = 0; t < 3; ++t) {
      const auto target = targets[b][t].item<std::int64_t>();
      if (target >= 0) expected = expected - at::log(at::exp(logits[b][t][target]) / at::exp(logits[b][t]).sum());
    }
  }
  CHECK(loss.item<double>() == Approx(expected.item<double>()).epsilon(1e-12));
  const auto found = torch::autograd::grad({loss}, {hidden, weight});
  const auto wanted = torch::autograd::grad({expected}, {hidden, weight});
  CHECK(largest_difference(found[0], wanted[0]) < 1e-12);
  CHECK(largest_difference(found[1], wanted[1]) < 1e-12);
  CHECK_THROWS_WITH(nn::linear_cross_entropy_sum(hidden, weight, targets.to(at::kInt)),
                    Catch::Contains("targets must be int64"));
  CHECK_THROWS_WITH(nn::linear_cross_entropy_sum(hidden, weight, targets[0]),
                    Catch::Contains("shape of hidden [2, 3, 5]"));
}

}  // namespace satformer
