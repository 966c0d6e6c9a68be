// adamw_ against the composite definition in float64, against PyTorch's fused AdamW, and against itself.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>

#include "csrc/ops/adamw.h"
#include "csrc/ops/adamw_reference.h"
#include "tests/catch.h"
#include "tests/csrc/adamw_support.h"
#include "tests/csrc/operator_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::adamw {
namespace {

void check_values(const std::vector<Sizes>& sizes, const Dtypes& dtypes, std::uint64_t seed) {
  INFO(dtypes.text() << ", " << sizes.size() << " tensors");
  const Inputs before = make_inputs(sizes, dtypes, seed);
  Inputs got = copy_of(before);
  ops::adamw_(got.tensors, kSettings, got.steps);
  CHECK(worst_update_error(before, got, kSettings) <= 1);
  CHECK_FALSE(at::equal(got.tensors.parameters[0], before.tensors.parameters[0]));
}

std::vector<at::Tensor> written(const Inputs& in) {
  std::vector<at::Tensor> list = in.tensors.parameters;
  list.insert(list.end(), in.tensors.exp_avgs.begin(), in.tensors.exp_avgs.end());
  list.insert(list.end(), in.tensors.exp_avg_sqs.begin(), in.tensors.exp_avg_sqs.end());
  return list;
}

void check_same_bits(const Inputs& a, const Inputs& b) {
  const auto x = written(a), y = written(b);
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(at::equal(x[i], y[i]));
}

// Parameter i alone.
Inputs only(const Inputs& in, std::size_t i) {
  const ops::AdamWTensors& t = in.tensors;
  return {{.parameters = {t.parameters[i]},
           .gradients = {t.gradients[i]},
           .exp_avgs = {t.exp_avgs[i]},
           .exp_avg_sqs = {t.exp_avg_sqs[i]},
           .gradient_factor = t.gradient_factor},
          {in.steps[i]}};
}

// 250 parameters of small and odd sizes, empty and 0-dimensional ones among them, of every mixture of dtypes.
Inputs many_parameters() {
  Inputs all = make_inputs({{3}}, kAllDtypes[0], 1);
  for (std::uint64_t i = 1; i < 250; ++i) {
    const auto n = static_cast<std::int64_t>(i * 37 % 300);
    const Sizes sizes = i % 10 == 3 ? Sizes{} : i % 10 == 6 ? Sizes{0, 4} : Sizes{n + 1};
    append(all, make_inputs({sizes}, kAllDtypes[i % kAllDtypes.size()], i + 1));
    all.steps.back() = static_cast<std::int64_t>(i % 4) + 1;
  }
  return all;
}

}  // namespace

TEST_CASE("adamw_: values for every dtype and size", "[ops]") {
  const std::vector<Sizes> sizes{{5}, {}, {1}, {0}, {2, 3, 7}, {8}, {511}, {512}, {513}, {1, 8191}, {8192}, {20011}};
  std::uint64_t seed = 1;
  for (const Dtypes& dtypes : kAllDtypes) {
    check_values(sizes, dtypes, seed++);
    check_values({{13}}, dtypes, seed++);
  }
}

TEST_CASE("adamw_: many parameters in one call are what each of them is alone", "[ops]") {
  const Inputs before = many_parameters();
  const Inputs together = copy_of(before), apart = copy_of(before);
  ops::adamw_(together.tensors, kSettings, together.steps);
  for (std::size_t i = 0; i < apart.steps.size(); ++i) {
    const Inputs one = only(apart, i);
    ops::adamw_(one.tensors, kSettings, one.steps);
  }
  check_same_bits(together, apart);
  CHECK(worst_update_error(before, together, kSettings) <= 1);
}

TEST_CASE("adamw_: empty lists and empty parameters", "[ops]") {
  Inputs none;
  none.tensors.gradient_factor = at::full({}, 1.0);
  ops::adamw_(none.tensors, kSettings, none.steps);
  const Inputs empty = make_inputs({{0}, {3, 0}}, kAllDtypes[0], 1);
  ops::adamw_(empty.tensors, kSettings, empty.steps);
  CHECK(empty.tensors.parameters[1].sizes() == at::IntArrayRef({3, 0}));
}

TEST_CASE("adamw_: the number of threads changes no bit", "[ops]") {
  Inputs before = make_inputs({{70001}, {3}, {1, 40, 1000}, {}, {8192}}, kAllDtypes[0], 1);
  append(before, make_inputs({{50021}}, kAllDtypes[4], 2));
  const auto results = with_threads([&] {
    const Inputs in = copy_of(before);
    ops::adamw_(in.tensors, kSettings, in.steps);
    return written(in);
  });
  for (std::size_t i = 0; i < results[0].size(); ++i) CHECK(at::equal(results[0][i], results[1][i]));
}

TEST_CASE("adamw_: where a parameter lies in memory changes no bit", "[ops]") {
  for (const Dtypes& dtypes : kAllDtypes) {
    const Inputs aligned = make_inputs({{1030}}, dtypes, 3);
    Inputs shifted = copy_of(aligned);
    std::int64_t offset = 1;
    for (auto* list : {&shifted.tensors.parameters, &shifted.tensors.gradients, &shifted.tensors.exp_avgs,
                       &shifted.tensors.exp_avg_sqs}) {
      at::Tensor& x = (*list)[0];
      x = at::zeros({1030 + offset}, x.options()).slice(0, offset).copy_(x);
      ++offset;
    }
    ops::adamw_(aligned.tensors, kSettings, aligned.steps);
    ops::adamw_(shifted.tensors, kSettings, shifted.steps);
    check_same_bits(aligned, shifted);
  }
}

TEST_CASE("adamw_: dense parameters whose dimensions lie in another order", "[ops]") {
  const Inputs plain = make_inputs({{6, 5, 7}}, kAllDtypes[0], 5);
  Inputs permuted = copy_of(plain);
  for (auto* list : {&permuted.tensors.parameters, &permuted.tensors.gradients, &permuted.tensors.exp_avgs,
                     &permuted.tensors.exp_avg_sqs}) {
    (*list)[0] = (*list)[0].permute({2, 0, 1}).contiguous().permute({1, 2, 0});
  }
  REQUIRE_FALSE(permuted.tensors.parameters[0].is_contiguous());
  ops::adamw_(plain.tensors, kSettings, plain.steps);
  ops::adamw_(permuted.tensors, kSettings, permuted.steps);
  check_same_bits(plain, permuted);
}

TEST_CASE("adamw_: PyTorch's fused AdamW gives the same", "[ops]") {
  const Inputs before = make_inputs({{1000}, {77}, {30, 41}}, kAllDtypes[0], 8);
  const Inputs ours = copy_of(before), theirs = copy_of(before);
  ops::adamw_(ours.tensors, kSettings, ours.steps);
  std::vector<at::Tensor> steps;
  for (const std::int64_t step : theirs.steps) steps.push_back(at::full({}, static_cast<double>(step), at::kFloat));
  const ops::AdamWTensors& t = theirs.tensors;
  const at::Tensor scale = at::full({}, 1 / t.gradient_factor.item<double>(), at::kFloat);
  at::_fused_adamw_(t.parameters, t.gradients, t.exp_avgs, t.exp_avg_sqs, /*max_exp_avg_sqs=*/{}, steps, kSettings.lr,
                    kSettings.beta1, kSettings.beta2, kSettings.weight_decay, kSettings.eps, /*amsgrad=*/false,
                    /*maximize=*/false, scale);
  // Both are off by float32 roundings.
  const auto a = written(ours), b = written(theirs);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const at::Tensor expected = b[i].to(at::kDouble);
    CHECK(worst_error(a[i], expected, expected.abs() + 0.1, at::kFloat, 32) <= 1);
  }
}

TEST_CASE("adamw_: special settings and numbers", "[ops]") {
  const auto after = [](const ops::AdamWSettings& settings, double gradient, double factor, double variance = 0.0) {
    Inputs in = make_inputs({{3}}, kAllDtypes[0], 1);  // step 1: the state is 0
    in.tensors.gradients[0].fill_(gradient);
    in.tensors.exp_avg_sqs[0].fill_(variance);
    in.tensors.gradient_factor.fill_(factor);
    ops::adamw_(in.tensors, settings, in.steps);
    return in.tensors;
  };
  const at::Tensor start = make_inputs({{3}}, kAllDtypes[0], 1).tensors.parameters[0];
  CHECK(at::equal(after({.lr = 0.0}, 1.0, 1.0).parameters[0], start));
  CHECK(at::equal(after({.lr = 0.5}, 0.0, 1.0).parameters[0], start));  // 0 / eps
  CHECK(at::equal(after({.lr = 0.5, .weight_decay = 0.5}, 7.0, 0.0).parameters[0], start * 0.75));
  CHECK(after({.lr = 0.5}, 1.0, std::numeric_limits<double>::quiet_NaN()).parameters[0].isnan().all().item<bool>());
  CHECK(after({.lr = 0.5}, std::numeric_limits<double>::infinity(), 1.0).exp_avgs[0].isinf().all().item<bool>());
  // Without averages a step is lr * sign(g).
  const at::Tensor signs = after({.lr = 0.5, .beta1 = 0.0, .beta2 = 0.0}, -3.0, 2.0).parameters[0];
  CHECK((signs - start - 0.5).abs().max().item<float>() < 1e-6F);
  // beta2 alone: sqrt(0.5 * 16 / (1 - 0.5)) = 4 after a gradient of 0.
  const ops::AdamWTensors decayed = after({.lr = 0.5, .beta1 = 0.5, .beta2 = 0.5}, 0.0, 1.0, 16.0);
  CHECK(at::equal(decayed.exp_avg_sqs[0], at::full({3}, 8.0F)));
  CHECK(at::equal(decayed.parameters[0], start));
}

TEST_CASE("adamw_: the reference does what it computes in place", "[ops]") {
  // One number by hand: t = 2, so that both corrections count.
  ops::AdamWTensors one{.parameters = {at::full({}, 2.0, at::kDouble)},
                        .gradients = {at::full({}, 3.0, at::kDouble)},
                        .exp_avgs = {at::full({}, 0.5, at::kDouble)},
                        .exp_avg_sqs = {at::full({}, 4.0, at::kDouble)},
                        .gradient_factor = at::full({}, 2.0, at::kDouble)};
  ops::adamw_reference_(one, {.lr = 0.1, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.25, .weight_decay = 0.2}, {2});
  const double m = 0.5 * 0.5 + 0.5 * 6, v = 0.75 * 4 + 0.25 * 36;
  CHECK(one.exp_avgs[0].item<double>() == Approx(m).epsilon(1e-15));
  CHECK(one.exp_avg_sqs[0].item<double>() == Approx(v).epsilon(1e-15));
  const double update = 0.1 * (m / 0.75) / (std::sqrt(v / (1 - 0.75 * 0.75)) + 0.25);
  CHECK(one.parameters[0].item<double>() == Approx(2.0 * 0.98 - update).epsilon(1e-15));
}

}  // namespace satformer::tests::adamw
