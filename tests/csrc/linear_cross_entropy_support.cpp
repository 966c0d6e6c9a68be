#include "tests/csrc/linear_cross_entropy_support.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/linear_cross_entropy.h"
#include "csrc/ops/linear_cross_entropy_reference.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::cross_entropy_tests {

using torch::autograd::variable_list;

LossInputs make_loss_inputs(std::int64_t N, std::int64_t d, std::int64_t V, at::ScalarType dtype, std::uint64_t seed,
                            RowLayout layout) {
  const at::Tensor index = at::arange(N, at::kLong);
  at::Tensor targets = at::remainder(index * 7919 + static_cast<std::int64_t>(seed), V);
  targets.masked_fill_(at::remainder(index, 7) == 3, kIgnored);
  return {with_layout(normal({N, d}, dtype, seed), layout), with_layout(normal({V, d}, dtype, seed + 1), layout),
          targets};
}

namespace {

// On the CPU, as all expectations.
at::Tensor to_double(const at::Tensor& x) { return x.detach().cpu().to(at::kDouble); }

// What may be wrong, in float64: of the loss [], grad_hidden [N, d], grad_weight [V, d].
struct Allowed {
  double loss;
  at::Tensor grad_hidden, grad_weight;
};

// Errors of the logits (a product over d, and where the dtype is low one rounding) move the loss of a token by at most
// twice the largest of them, and p by twice that times p. exp is within 16 u, a sum over V within V u. Gradients of
// logits are rounded to the dtype once, products over V and N add a u for each term; a low-precision product is rounded
// for each chunk before it is added.
Allowed allowed_errors(const LossInputs& in, double scale) {
  const at::ScalarType dtype = in.hidden.scalar_type();
  const bool low = dtype != at::toOpMathType(dtype);
  const double u = arithmetic_error(dtype), rounded = low ? rounding(dtype) : 0;
  const at::Tensor h = to_double(in.hidden), w = to_double(in.weight), logits = at::mm(h, w.t());
  const auto N = static_cast<double>(h.size(0)), d = static_cast<double>(h.size(1)), V = static_cast<double>(w.size(0));
  const at::Tensor counts = (in.targets != kIgnored).to(at::kDouble).unsqueeze(1);
  const at::Tensor logit_error =
      std::get<0>((d * u * at::mm(h.abs(), w.abs().t()) + rounded * logits.abs()).max(1, /*keepdim=*/true));
  const at::Tensor largest = std::get<0>(logits.abs().max(1, true));
  const at::Tensor token = 2 * logit_error + u * (V + 32 + 8 * largest);
  const at::Tensor p = at::softmax(logits, 1) * counts;
  at::Tensor onehot = at::zeros_like(p);
  onehot.scatter_(1, in.targets.clamp_min(0).unsqueeze(1), counts);
  const at::Tensor gradient = scale * (p - onehot).abs();
  const at::Tensor gradient_error = scale * (p * (2 * token) + 4 * u * onehot) + (rounded + 4 * u) * gradient;
  const double tiny = dtype == at::kHalf ? 0x1p-24 : 0x1p-126;
  const at::Tensor to_hidden = at::mm(gradient, w.abs()), to_weight = at::mm(gradient.t(), h.abs());
  return {
      scale * ((token * counts).sum().item<double>() + 2 * u * at::logsumexp(logits, 1).abs().sum().item<double>()) +
          tiny,
      at::mm(gradient_error, w.abs()) + (V * u + 2 * rounding(dtype)) * to_hidden + tiny * V,
      at::mm(gradient_error.t(), h.abs()) + (N * u + 2 * rounding(dtype)) * to_weight + tiny * N};
}

bool within(const at::Tensor& got, const at::Tensor& expected, const at::Tensor& allowed) {
  return got.sizes() == expected.sizes() && ((to_double(got) - expected).abs() <= allowed).all().item<bool>();
}

}  // namespace

void check(const LossInputs& in, double scale, at::Device device) {
  INFO(fmt::format("N {} d {} V {} {}", in.hidden.size(0), in.hidden.size(1), in.weight.size(0),
                   c10::toString(in.hidden.scalar_type())));
  const at::Tensor h = to_double(in.hidden).requires_grad_(), w = to_double(in.weight).requires_grad_();
  const at::Tensor expected = ops::linear_cross_entropy_reference(h, w, in.targets, kIgnored, scale);
  const variable_list gradients = torch::autograd::grad({expected}, {h, w});
  const Allowed allowed = allowed_errors(in, scale);
  const at::Tensor hidden = on(device, in.hidden), weight = on(device, in.weight), targets = on(device, in.targets);
  const at::Tensor loss = ops::linear_cross_entropy(hidden, weight, targets, kIgnored, scale);
  REQUIRE(loss.device().type() == device.type());
  CHECK(loss.sizes().empty());
  CHECK(loss.scalar_type() == at::toOpMathType(in.hidden.scalar_type()));
  CHECK(std::abs(loss.item<double>() - expected.item<double>()) <= allowed.loss);

  const auto [same_loss, grad_hidden, grad_weight] =
      ops::linear_cross_entropy_with_gradients(hidden, weight, targets, kIgnored, scale);
  CHECK(at::equal(same_loss, loss));
  CHECK(grad_hidden.scalar_type() == in.hidden.scalar_type());
  CHECK(grad_weight.scalar_type() == in.weight.scalar_type());
  CHECK(within(grad_hidden, gradients[0], allowed.grad_hidden));
  CHECK(within(grad_weight, gradients[1], allowed.grad_weight));
}

}  // namespace satformer::tests::cross_entropy_tests
