#include "tests/csrc/rms_norm_support.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/rms_norm.h"
#include "csrc/ops/rms_norm_reference.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::norm_tests {

using torch::autograd::variable_list;

std::string NormCase::text() const {
  return fmt::format("[{}] x {} residual {} y {} weight {} layout {}", fmt::join(sizes, ", "), c10::toString(dtype),
                     c10::toString(residual_dtype), c10::toString(out_dtype), c10::toString(weight_dtype),
                     static_cast<int>(layout));
}

NormInputs make_norm_inputs(const NormCase& c, std::uint64_t seed) {
  return {with_layout(normal(c.sizes, c.dtype, seed), c.layout),
          with_layout(normal(c.sizes, c.residual_dtype, seed + 1), c.layout),
          normal({c.sizes.back()}, c.weight_dtype, seed + 2),
          with_layout(normal(c.sizes, c.out_dtype, seed + 3), c.layout),
          with_layout(normal(c.sizes, c.dtype, seed + 4), c.layout)};
}

namespace {

// On the CPU, as all expectations.
at::Tensor to_double(const at::Tensor& x) { return x.detach().cpu().to(at::kDouble); }

at::Tensor flat_sum(at::Tensor x) {
  while (x.dim() > 1) x = x.sum(0);
  return x;
}

// Of a sum of n squares or products in any order: n u; what follows is a few roundings.
double row_ulps(const NormCase& c) { return kArithmeticUlps + 2 * static_cast<double>(c.sizes.back()); }

// sum, y, inverse_rms
std::tuple<at::Tensor, at::Tensor, at::Tensor> check_values(const NormCase& c, const NormInputs& in) {
  const auto result = ops::add_rms_norm(in.x, in.residual, in.weight, kEps, c.out_dtype);
  const auto& [sum, y, inverse_rms] = result;
  CHECK(sum.scalar_type() == c.dtype);
  CHECK(y.scalar_type() == c.out_dtype);
  CHECK((sum.is_contiguous() && y.is_contiguous()));
  const at::Tensor expected_sum = to_double(in.x) + to_double(in.residual);
  CHECK(worst_error(sum, expected_sum, expected_sum.abs(), c.dtype, 1) <= 1);  // one addition
  const auto [expected_y, expected_inverse] = ops::rms_norm_reference(to_double(sum), to_double(in.weight), kEps);
  CHECK(worst_error(inverse_rms, expected_inverse, expected_inverse, c.dtype, row_ulps(c)) <= 1);
  CHECK(worst_error(y, expected_y, expected_y.abs(), c.dtype, row_ulps(c)) <= 1);
  // The same numbers by every way to them.
  const auto [same_y, same_inverse] = ops::rms_norm(with_layout(sum, c.layout), in.weight, kEps, c.out_dtype);
  CHECK(at::equal(same_y, y));
  CHECK(at::equal(same_inverse, inverse_rms));
  CHECK(at::equal(ops::rms_norm_apply(with_layout(sum, c.layout), in.weight, inverse_rms, c.out_dtype), y));
  return result;
}

void check_gradients(const NormCase& c, const NormInputs& in, const at::Tensor& sum, const at::Tensor& inverse_rms) {
  const auto [grad_x, grad_weight, grad_residual] =
      ops::rms_norm_backward(in.grad_y, in.grad_sum, sum, in.weight, inverse_rms, c.residual_dtype);
  const at::Tensor s = to_double(sum).requires_grad_(), w = to_double(in.weight).requires_grad_();
  const at::Tensor g = to_double(in.grad_y), through = to_double(in.grad_sum);
  const auto [y, r] = ops::rms_norm_reference(s, w, kEps);
  const variable_list expected = torch::autograd::grad({y, s * 1}, {s, w}, {g, through});
  const at::Tensor gw = (g * w).detach().abs(), inverse = r.detach(), size = s.detach().abs();
  const at::Tensor magnitude =
      through.abs() + inverse * (gw + size * inverse * inverse * (gw * size).mean(-1, /*keepdim=*/true));
  CHECK(grad_x.scalar_type() == c.dtype);
  CHECK(worst_error(grad_x, expected[0], magnitude, c.dtype, row_ulps(c)) <= 1);
  if (c.residual_dtype == c.dtype) {
    CHECK_FALSE(grad_residual.defined());
  } else {
    CHECK(grad_residual.scalar_type() == c.residual_dtype);
    CHECK(worst_error(grad_residual, expected[0], magnitude, c.dtype, row_ulps(c)) <= 1);
  }
  const double rows = static_cast<double>(inverse_rms.numel());
  CHECK(grad_weight.scalar_type() == c.weight_dtype);
  CHECK(worst_error(grad_weight, expected[1], flat_sum((g * s.detach() * inverse).abs()), c.dtype,
                    row_ulps(c) + rows) <= 1);

  // Autograd hands out what the backward operator computes.
  const at::Tensor x = in.x.detach().requires_grad_(), residual = in.residual.detach().requires_grad_(),
                   weight = in.weight.detach().requires_grad_();
  const auto out = ops::add_rms_norm(x, residual, weight, kEps, c.out_dtype);
  CHECK_FALSE(std::get<2>(out).requires_grad());
  const variable_list got =
      torch::autograd::grad({std::get<0>(out), std::get<1>(out)}, {x, residual, weight}, {in.grad_sum, in.grad_y});
  CHECK(at::equal(got[0], grad_x));
  CHECK(at::equal(got[1], grad_residual.defined() ? grad_residual : grad_x));
  CHECK(at::equal(got[2], grad_weight));
}

}  // namespace

void check(const NormCase& c, std::uint64_t seed, at::Device device) {
  INFO(c.text());
  NormInputs in = make_norm_inputs(c, seed);
  for (at::Tensor* x : {&in.x, &in.residual, &in.weight, &in.grad_y, &in.grad_sum}) *x = on(device, *x);
  const auto [sum, y, inverse_rms] = check_values(c, in);
  REQUIRE(y.device().type() == device.type());
  check_gradients(c, in, sum, inverse_rms);
}

}  // namespace satformer::tests::norm_tests
