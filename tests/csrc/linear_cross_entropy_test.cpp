// linear_cross_entropy: loss and gradients against the composite definition in float64, which central differences hold.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/max.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "csrc/ops/linear_cross_entropy.h"
#include "csrc/ops/linear_cross_entropy_reference.h"
#include "tests/catch.h"
#include "tests/csrc/linear_cross_entropy_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests::cross_entropy_tests {
namespace {

using torch::autograd::variable_list;

}  // namespace

TEST_CASE("linear_cross_entropy: loss and gradients for every dtype, size and layout", "[ops]") {
  std::uint64_t seed = 1;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const auto& [N, d, V] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {1, 3, 2}, {5, 7, 11}, {8, 16, 32}, {37, 16, 33}, {0, 4, 5}, {300, 8, 1000}, {700, 4, 4099}}) {
      check(make_loss_inputs(N, d, V, dtype, seed, kRowLayouts[seed % 4]), seed % 2 ? 1 : 0.125);
      ++seed;
    }
  }
}

TEST_CASE("linear_cross_entropy: autograd multiplies by the incoming number", "[ops]") {
  const LossInputs in = make_loss_inputs(20, 8, 31, at::kFloat, 3);
  const auto [loss, grad_hidden, grad_weight] =
      ops::linear_cross_entropy_with_gradients(in.hidden, in.weight, in.targets);
  const at::Tensor h = in.hidden.detach().requires_grad_(), w = in.weight.detach().requires_grad_();
  const at::Tensor through = ops::linear_cross_entropy(h, w, in.targets);
  CHECK(at::equal(through, loss));
  for (const double factor : {1., 0.5}) {  // a graph that is kept serves twice
    const variable_list got = torch::autograd::grad({through}, {h, w}, {at::full({}, factor)}, /*retain_graph=*/true);
    CHECK(at::equal(got[0], grad_hidden * factor));
    CHECK(at::equal(got[1], grad_weight * factor));
  }
  through.backward({}, /*retain_graph=*/true);
  through.backward();
  CHECK(at::equal(h.grad(), grad_hidden * 2));
  CHECK(at::equal(w.grad(), grad_weight * 2));

  const at::Tensor only_hidden = ops::linear_cross_entropy(h, in.weight, in.targets);
  CHECK(at::equal(torch::autograd::grad({only_hidden}, {h})[0], grad_hidden));
  const at::Tensor only_weight = ops::linear_cross_entropy(in.hidden, w, in.targets);
  CHECK(at::equal(torch::autograd::grad({only_weight}, {w})[0], grad_weight));
  CHECK_FALSE(ops::linear_cross_entropy(in.hidden, in.weight, in.targets).requires_grad());
  const at::Tensor again = ops::linear_cross_entropy(h, w, in.targets);
  CHECK(message_of([&] { torch::autograd::grad({again}, {h}, {}, std::nullopt, /*create_graph=*/true); }) ==
        "linear_cross_entropy: second derivatives are not implemented");
}

TEST_CASE("linear_cross_entropy: agrees with central differences", "[ops]") {
  const LossInputs in = make_loss_inputs(9, 3, 5, at::kDouble, 4);
  in.hidden.requires_grad_();
  in.weight.requires_grad_();
  for (const bool kernel : {false, true}) {
    const auto value = [&] {
      return kernel ? ops::linear_cross_entropy(in.hidden, in.weight, in.targets, kIgnored, 0.3)
                    : ops::linear_cross_entropy_reference(in.hidden, in.weight, in.targets, kIgnored, 0.3);
    };
    const variable_list leaves{in.hidden, in.weight}, got = torch::autograd::grad({value()}, leaves);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      // step^2 and rounding / step: about 1e-9 for a loss near 10
      CHECK((got[i] - central_differences(value, leaves[i])).abs().max().item<double>() < 1e-7);
    }
  }
}

TEST_CASE("linear_cross_entropy: masks, float32 gradients of a bfloat16 weight, ignored targets, NaN", "[ops]") {
  const LossInputs in = make_loss_inputs(40, 8, 50, at::kBFloat16, 5);
  const auto [loss, grad_hidden, grad_weight] = ops::linear_cross_entropy_with_gradients(
      in.hidden, in.weight, in.targets, kIgnored, 1, {false, true}, at::kFloat);
  CHECK_FALSE(grad_hidden.defined());
  CHECK(grad_weight.scalar_type() == at::kFloat);
  const auto whole =
      ops::linear_cross_entropy_with_gradients(in.hidden, in.weight, in.targets, kIgnored, 1, {true, true});
  CHECK(at::equal(std::get<2>(whole), grad_weight.to(at::kBFloat16)));
  CHECK_FALSE(std::get<2>(ops::linear_cross_entropy_with_gradients(in.hidden, in.weight, in.targets, kIgnored, 1,
                                                                   {true, false}))
                  .defined());

  for (const auto dtype : {at::kFloat, at::kHalf}) {
    const LossInputs x = make_loss_inputs(10, 4, 6, dtype, 6);
    const auto [none, to_hidden, to_weight] =
        ops::linear_cross_entropy_with_gradients(x.hidden, x.weight, at::full({10}, 77, at::kLong), 77);
    CHECK(none.item<double>() == 0);
    CHECK(at::equal(to_hidden, at::zeros_like(to_hidden)));
    CHECK(at::equal(to_weight, at::zeros_like(to_weight)));
    x.hidden[1].fill_(std::numeric_limits<float>::quiet_NaN());
    const auto [nan, nan_hidden, nan_weight] =
        ops::linear_cross_entropy_with_gradients(x.hidden, x.weight, x.targets, kIgnored);
    CHECK(at::isnan(nan).item<bool>());
    CHECK(at::isnan(nan_hidden[1]).all().item<bool>());
    CHECK_FALSE(at::isnan(nan_hidden[0]).any().item<bool>());
  }
  // Logits of thousands: the largest is taken off before exp.
  const at::Tensor big = at::full({1, 1}, 4000.), weight = at::ones({3, 1});
  CHECK(ops::linear_cross_entropy(big.to(at::kFloat), weight, at::zeros({1}, at::kLong)).item<double>() ==
        Approx(std::log(3.)).epsilon(1e-6));
}

TEST_CASE("linear_cross_entropy: the number of threads changes no bit of the loss", "[ops]") {
  const LossInputs in = make_loss_inputs(900, 1, 3001, at::kFloat, 8);  // d 1: products have no order
  const auto results =
      with_threads([&] { return variable_list{ops::linear_cross_entropy(in.hidden, in.weight, in.targets)}; });
  CHECK(at::equal(results[0][0], results[1][0]));
}

TEST_CASE("linear_cross_entropy: errors, schemas, dispatch keys, meta tensors, autocast", "[ops]") {
  const LossInputs in = make_loss_inputs(9, 4, 6, at::kFloat, 1);
  const auto error = [](const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets) {
    return message_of([&] { ops::linear_cross_entropy(hidden, weight, targets); });
  };
  const std::string op = "linear_cross_entropy: ";
  at::Tensor wrong = in.targets.clone();
  wrong[5] = 6;
  CHECK(error(in.hidden, in.weight, wrong) == op + "targets must be 0 .. 5 or the ignore_index -100, got 6 at index 5");
  wrong[5] = -1;
  CHECK(error(in.hidden, in.weight, wrong) ==
        op + "targets must be 0 .. 5 or the ignore_index -100, got -1 at index 5");
  CHECK(error(in.hidden[0], in.weight, in.targets) == op + "hidden must be [N, d], got [4]");
  CHECK(error(in.hidden, in.weight.t(), in.targets) == op + "weight must be [V, 4] for a hidden of [9, 4], got [4, 6]");
  CHECK(error(in.hidden, in.weight.to(at::kHalf), in.targets) == op + "weight must be Float like hidden, got Half");
  CHECK(error(in.hidden, in.weight, in.targets.to(at::kInt)) == op + "targets must be int64, got Int");
  CHECK(error(in.hidden, in.weight, in.targets.slice(0, 1)) ==
        op + "targets must be [9], one for each row of hidden, got [8]");
  CHECK(error(in.hidden, at::empty({6, 4}, at::TensorOptions(at::kMeta)), in.targets) ==
        op + "weight must be on cpu like hidden, got meta");

  CHECK(schema_of("linear_cross_entropy") ==
        "satformer::linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets, int ignore_index=-100, float "
        "scale=1.) -> Tensor");
  for (const char* name : {"linear_cross_entropy", "linear_cross_entropy_with_gradients"}) {
    CHECK(has_kernels(name, {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}));
  }
  CHECK(has_kernels("linear_cross_entropy", {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA}));

  const auto meta = [](at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype));
  };
  const auto [loss, grad_hidden, grad_weight] =
      ops::linear_cross_entropy_with_gradients(meta({9, 4}, at::kBFloat16), meta({6, 4}, at::kBFloat16),
                                               meta({9}, at::kLong), -100, 1, {true, true}, at::kFloat);
  CHECK((loss.is_meta() && loss.dim() == 0 && loss.scalar_type() == at::kFloat));
  CHECK((grad_hidden.scalar_type() == at::kBFloat16 && grad_weight.scalar_type() == at::kFloat));
  CHECK(grad_weight.sizes() == at::IntArrayRef({6, 4}));

  at::Tensor cast;
  {
    const CPUAutocast autocast;
    cast = ops::linear_cross_entropy(in.hidden, in.weight, in.targets);
  }
  CHECK(cast.scalar_type() == at::kFloat);
  CHECK(
      at::equal(cast, ops::linear_cross_entropy(in.hidden.to(at::kBFloat16), in.weight.to(at::kBFloat16), in.targets)));
}

}  // namespace satformer::tests::cross_entropy_tests
