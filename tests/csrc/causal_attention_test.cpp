// The causal attention operators: the kernels against the composite definition in float64, which central differences
// hold.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/log.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "csrc/ops/causal_attention.h"
#include "csrc/ops/causal_attention_reference.h"
#include "tests/catch.h"
#include "tests/csrc/operator_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::causal_attention_tests {
namespace {

using torch::autograd::variable_list;

// The exponential is within 20 u. A score's error, a few u of the sum of its products' magnitudes, is an error of its
// exponential relative to that: the magnitudes below carry it as a factor. The rest are roundings of sums.
constexpr double kUlps = 32;

struct Sizes {
  std::int64_t B, T, H, H_kv, hd;
};

struct Inputs {
  at::Tensor q, k, v, grad;
};

Inputs make_inputs(const Sizes& n, at::ScalarType dtype, RowLayout layout, std::uint64_t seed) {
  const auto make = [&](std::int64_t heads, std::uint64_t with) {
    return with_layout(normal({n.B, n.T, heads, n.hd}, dtype, with), layout);
  };
  return {make(n.H, seed), make(n.H_kv, seed + 1000), make(n.H_kv, seed + 2000), make(n.H, seed + 3000)};
}

// What each result's roundings are relative to, from absolute values: [B, H, T, ...] inside, [B, T, heads, hd] outside.
struct Magnitudes {
  at::Tensor out, q, k, v;
};

Magnitudes magnitudes(const Inputs& x, const Sizes& n) {
  const std::int64_t group = n.H / n.H_kv;
  const auto heads = [&](const at::Tensor& y) { return y.repeat_interleave(n.H / y.size(2), 2).transpose(1, 2).abs(); };
  const auto back = [&](const at::Tensor& y) { return y.transpose(1, 2).unflatten(2, {n.H_kv, group}).sum(3); };
  const double scale = 1 / std::sqrt(static_cast<double>(n.hd));
  const auto [out, logsumexp] = ops::causal_attention_reference(x.q, x.k, x.v);
  const at::Tensor later = at::ones({n.T, n.T}, at::kBool).triu(1);
  const at::Tensor raw = at::matmul(x.q.transpose(1, 2), x.k.repeat_interleave(group, 2).permute({0, 2, 3, 1})) * scale;
  const at::Tensor p = (raw - logsumexp.unsqueeze(-1)).exp().masked_fill(later, 0);
  const at::Tensor scores = (at::matmul(heads(x.q), heads(x.k).transpose(2, 3)) * scale).masked_fill(later, 0);
  const at::Tensor wide = p * (1 + scores.amax(-1, true));
  const at::Tensor dp = at::matmul(heads(x.grad), heads(x.v).transpose(2, 3)).masked_fill(later, 0);
  const at::Tensor ds = wide * (dp + (p * dp).sum(-1, true)) * scale;
  return {at::matmul(wide, heads(x.v)).transpose(1, 2), at::matmul(ds, heads(x.k)).transpose(1, 2),
          back(at::matmul(ds.transpose(2, 3), heads(x.q))), back(at::matmul(wide.transpose(2, 3), heads(x.grad)))};
}

at::Tensor in_double(const at::Tensor& x) { return x.detach().to(at::kDouble); }

void check(const Sizes& n, at::ScalarType dtype, RowLayout layout, std::uint64_t seed) {
  INFO(fmt::format("B {} T {} H {} H_kv {} hd {} {} layout {}", n.B, n.T, n.H, n.H_kv, n.hd, c10::toString(dtype),
                   static_cast<int>(layout)));
  const Inputs x = make_inputs(n, dtype, layout, seed);
  Inputs wide{in_double(x.q), in_double(x.k), in_double(x.v), in_double(x.grad)};
  const auto [out, logsumexp] = ops::causal_attention(x.q, x.k, x.v);
  const auto [expected, expected_logsumexp] = ops::causal_attention_reference(wide.q, wide.k, wide.v);
  CHECK((out.scalar_type() == dtype && out.is_contiguous() && out.sizes() == x.q.sizes()));
  const Magnitudes allowed = magnitudes(wide, n);
  CHECK(worst_error(out, expected, allowed.out, dtype, kUlps) <= 1);
  // The largest of T normal scores and the logarithm of their number.
  CHECK(worst_error(logsumexp, expected_logsumexp, at::full_like(expected_logsumexp, 16.0), dtype, kUlps) <= 1);

  const auto [dq, dk, dv] = ops::causal_attention_backward(x.grad, x.q, x.k, x.v, out, logsumexp);
  const auto [rq, rk, rv] = ops::causal_attention_backward_reference(wide.grad, wide.q, wide.k, wide.v);
  CHECK((dq.is_contiguous() && dk.is_contiguous() && dv.is_contiguous()));
  CHECK(worst_error(dq, rq, allowed.q, dtype, kUlps) <= 1);
  CHECK(worst_error(dk, rk, allowed.k, dtype, kUlps) <= 1);
  CHECK(worst_error(dv, rv, allowed.v, dtype, kUlps) <= 1);

  const variable_list leaves{x.q.detach().requires_grad_(), x.k.detach().requires_grad_(),
                             x.v.detach().requires_grad_()};
  const at::Tensor y = std::get<0>(ops::causal_attention(leaves[0], leaves[1], leaves[2]));
  const variable_list grads = torch::autograd::grad({y}, leaves, {x.grad});
  CHECK((at::equal(grads[0], dq) && at::equal(grads[1], dk) && at::equal(grads[2], dv)));
}

}  // namespace

TEST_CASE("causal_attention: values and gradients for every dtype, size and layout", "[ops]") {
  std::vector<Sizes> all{{1, 1, 1, 1, 1},    {2, 257, 2, 1, 64}, {1, 130, 4, 4, 80},
                         {3, 48, 6, 2, 8},   {2, 97, 3, 3, 16},  {1, 200, 2, 2, 32},
                         {1, 49, 4, 1, 130}, {2, 64, 2, 2, 20},  {1, 511, 1, 1, 3}};
  for (const std::int64_t T : {2, 5, 6, 7, 15, 16, 17, 31, 33, 47, 63, 65, 96, 112, 113, 129}) {
    all.push_back({1, T, 2, 1, 10});
  }
  std::uint64_t seed = 1;
  for (const Sizes& sizes : all) {
    for (const RowLayout layout : kRowLayouts) {
      for (const auto dtype : {at::kFloat, at::kDouble}) check(sizes, dtype, layout, seed++);
    }
  }
}

TEST_CASE("causal_attention: nothing to do", "[ops]") {
  for (const Sizes& n : {Sizes{0, 5, 2, 1, 8}, Sizes{2, 0, 2, 1, 8}, Sizes{2, 5, 0, 0, 8}}) {
    const Inputs x = make_inputs(n, at::kFloat, RowLayout::kContiguous, 1);
    const auto [out, logsumexp] = ops::causal_attention(x.q, x.k, x.v);
    CHECK(out.sizes() == x.q.sizes());
    CHECK(logsumexp.sizes() == at::IntArrayRef({n.B, n.H, n.T}));
    const auto [dq, dk, dv] = ops::causal_attention_backward(x.grad, x.q, x.k, x.v, out, logsumexp);
    CHECK((dq.sizes() == x.q.sizes() && dk.sizes() == x.k.sizes() && dv.sizes() == x.v.sizes()));
  }
}

TEST_CASE("causal_attention: later tokens change no bit of a query's output and get no gradient from it", "[ops]") {
  const Sizes n{1, 150, 2, 1, 24};
  const Inputs x = make_inputs(n, at::kFloat, RowLayout::kContiguous, 5);
  const at::Tensor out = std::get<0>(ops::causal_attention(x.q, x.k, x.v));
  for (const std::int64_t t : {0, 1, 46, 47, 48, 63, 64, 100, 148}) {
    INFO(t);
    Inputs changed{x.q.clone(), x.k.clone(), x.v.clone(), at::zeros_like(x.grad)};
    for (const at::Tensor* y : {&changed.q, &changed.k, &changed.v}) y->slice(1, t + 1).mul_(-3).add_(1);
    const auto [again, logsumexp] = ops::causal_attention(changed.q, changed.k, changed.v);
    CHECK(at::equal(again.slice(1, 0, t + 1), out.slice(1, 0, t + 1)));
    changed.grad.slice(1, 0, t + 1).fill_(1);
    const auto [dq, dk, dv] =
        ops::causal_attention_backward(changed.grad, changed.q, changed.k, changed.v, again, logsumexp);
    for (const at::Tensor* grad : {&dq, &dk, &dv}) {
      CHECK(at::equal(grad->slice(1, t + 1), at::zeros_like(grad->slice(1, t + 1))));
    }
  }
}

TEST_CASE("causal_attention: large scores overflow nothing, what is not finite is not hidden", "[ops]") {
  const Sizes n{1, 130, 2, 2, 16};
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const Inputs x = make_inputs(n, dtype, RowLayout::kContiguous, 9);
    const auto [out, logsumexp] = ops::causal_attention(x.q * 1e6, x.k * 1e6, x.v);
    const auto [dq, dk, dv] = ops::causal_attention_backward(x.grad, x.q * 1e6, x.k * 1e6, x.v, out, logsumexp);
    for (const at::Tensor& y : {out, logsumexp, dq, dk, dv}) CHECK(at::isfinite(y).all().item<bool>());

    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      const at::Tensor q = x.q.clone(), k = x.k.clone();
      q.select(1, 70).select(1, 0).fill_(value);
      k.select(1, 90).select(1, 1).fill_(value);
      const auto [bad, bad_logsumexp] = ops::causal_attention(q, k, x.v);
      const at::Tensor nan = at::isnan(bad).all(-1)[0];  // [T, H]
      for (std::int64_t t = 0; t < n.T; ++t) {
        INFO(t);
        CHECK(nan[t][0].item<bool>() == (t == 70));
        CHECK(nan[t][1].item<bool>() == (t >= 90));
      }
      const auto [bad_dq, bad_dk, bad_dv] = ops::causal_attention_backward(x.grad, q, k, x.v, bad, bad_logsumexp);
      CHECK(at::isnan(bad_dq.select(1, 70).select(1, 0)).all().item<bool>());
      CHECK(at::isnan(bad_dk.select(1, 70).select(1, 0)).all().item<bool>());
      CHECK(at::isnan(bad_dv.select(1, 90).select(1, 1)).all().item<bool>());
    }
  }
}

TEST_CASE("causal_attention: central differences and second derivatives", "[ops]") {
  const Sizes n{2, 5, 4, 2, 3};
  const Inputs x = make_inputs(n, at::kDouble, RowLayout::kContiguous, 3);
  const variable_list inputs{x.q.requires_grad_(), x.k.requires_grad_(), x.v.requires_grad_()};
  for (const bool kernel : {false, true}) {
    const auto value = [&] {
      const auto [out, logsumexp] =
          kernel ? ops::causal_attention(x.q, x.k, x.v) : ops::causal_attention_reference(x.q, x.k, x.v);
      return (out * x.grad).sum();
    };
    const variable_list got = torch::autograd::grad({value()}, inputs);
    for (std::size_t i = 0; i < got.size(); ++i) {
      // step^2 and rounding / step: about 1e-10
      CHECK((got[i] - central_differences(value, inputs[i].detach())).abs().max().item<double>() < 1e-8);
    }
  }
  x.grad.requires_grad_();
  const auto second = [&](const at::Tensor& out) {
    const variable_list first = torch::autograd::grad({out}, inputs, {x.grad}, std::nullopt, /*create_graph=*/true);
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (const at::Tensor& grad : first) sum = sum + (grad * grad).sum();
    return torch::autograd::grad({sum}, {x.q, x.k, x.v, x.grad});
  };
  const variable_list got = second(std::get<0>(ops::causal_attention(x.q, x.k, x.v)));
  const variable_list expected = second(std::get<0>(ops::causal_attention_reference(x.q, x.k, x.v)));
  for (std::size_t i = 0; i < got.size(); ++i) CHECK((got[i] - expected[i]).abs().max().item<double>() < 1e-12);
}

TEST_CASE("causal_attention: the number of threads changes no bit", "[ops]") {
  const Inputs x = make_inputs({2, 200, 6, 3, 32}, at::kFloat, RowLayout::kContiguous, 4);
  const auto results = with_threads([&] {
    const auto [out, logsumexp] = ops::causal_attention(x.q, x.k, x.v);
    const auto [dq, dk, dv] = ops::causal_attention_backward(x.grad, x.q, x.k, x.v, out, logsumexp);
    return variable_list{out, logsumexp, dq, dk, dv};
  });
  for (std::size_t i = 0; i < results[0].size(); ++i) CHECK(at::equal(results[0][i], results[1][i]));
}

TEST_CASE("causal_attention: errors, schemas, dispatch keys, meta tensors", "[ops]") {
  const at::Tensor q = at::ones({2, 5, 4, 8}), k = at::ones({2, 5, 2, 8});
  const auto error = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return message_of([&] { ops::causal_attention(a, b, c); });
  };
  CHECK(error(q[0], k, k) == "causal_attention: q must have the 4 dimensions [B, T, H, hd], got [5, 4, 8]");
  CHECK(error(q, k[0], k) == "causal_attention: k must have the 4 dimensions [B, T, H_kv, hd], got [5, 2, 8]");
  CHECK(error(q.to(at::kBFloat16), k, k) == "causal_attention: q must be float32 or float64, got BFloat16");
  CHECK(error(q, k.to(at::kDouble), k) == "causal_attention: k must be Float like q, got Double");
  CHECK(error(q, k, k.to(at::kDouble)) == "causal_attention: v must be Float like q, got Double");
  CHECK(error(q, at::ones({2, 4, 2, 8}), k) == "causal_attention: k must be [2, 5, 2, 8], as q is, got [2, 4, 2, 8]");
  CHECK(error(q, k, q) == "causal_attention: v must be [2, 5, 2, 8], as k is, got [2, 5, 4, 8]");
  const at::Tensor three = at::ones({2, 5, 3, 8}), none = at::ones({2, 5, 0, 8});
  CHECK(error(q, three, three) == "causal_attention: the number of k's heads must divide q's 4, got 3");
  CHECK(error(q, none, none) == "causal_attention: the number of k's heads must divide q's 4, got 0");
  const at::Tensor empty = at::ones({2, 5, 4, 0});
  CHECK(error(empty, empty, empty) == "causal_attention: q must have numbers in its heads, got [2, 5, 4, 0]");
  CHECK(error(q, at::empty({2, 5, 2, 8}, at::TensorOptions(at::kMeta)), k) ==
        "causal_attention: k must be on cpu like q, got meta");
  const auto [out, logsumexp] = ops::causal_attention(q, k, k);
  CHECK(message_of([&, &lse = logsumexp] { ops::causal_attention_backward(q, q, k, k, k, lse); }) ==
        "causal_attention_backward: out must be [2, 5, 4, 8], as q is, got [2, 5, 2, 8]");
  CHECK(message_of([&, &y = out] { ops::causal_attention_backward(q, q, k, k, y, y); }) ==
        "causal_attention_backward: logsumexp must be [2, 4, 5], q's [B, H, T], got [2, 5, 4, 8]");
  CHECK(message_of([&, &y = out, &lse = logsumexp] { ops::causal_attention_backward(k, q, k, k, y, lse); }) ==
        "causal_attention_backward: grad must be [2, 5, 4, 8], as q is, got [2, 5, 2, 8]");

  CHECK(schema_of("causal_attention") ==
        "satformer::causal_attention(Tensor q, Tensor k, Tensor v) -> (Tensor out, Tensor logsumexp)");
  CHECK(schema_of("causal_attention_backward") ==
        "satformer::causal_attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor logsumexp) "
        "-> (Tensor, Tensor, Tensor)");
  for (const char* name : {"causal_attention", "causal_attention_backward"}) {
    CHECK(has_kernels(name, {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}));
  }

  const auto meta = [](const at::Tensor& x) { return at::empty(x.sizes(), x.options().device(at::kMeta)); };
  const auto [meta_out, meta_logsumexp] = ops::causal_attention(meta(q), meta(k), meta(k));
  CHECK((meta_out.is_meta() && meta_out.sizes() == q.sizes()));
  CHECK(meta_logsumexp.sizes() == at::IntArrayRef({2, 4, 5}));
  const auto [dq, dk, dv] =
      ops::causal_attention_backward(meta(q), meta(q), meta(k), meta(k), meta_out, meta_logsumexp);
  CHECK((dq.sizes() == q.sizes() && dk.sizes() == k.sizes() && dv.sizes() == k.sizes()));

  const at::Tensor leaf = q.clone().requires_grad_();
  const auto [y, no_gradient] = ops::causal_attention(leaf, k, k);
  CHECK(y.requires_grad());
  CHECK_FALSE(no_gradient.requires_grad());
}

}  // namespace satformer::tests::causal_attention_tests
