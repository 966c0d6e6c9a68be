#include "tests/csrc/swiglu_support.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sigmoid.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/swiglu.h"
#include "csrc/ops/swiglu_reference.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::swiglu_tests {
namespace {

// The kernel's sigmoid is within 2^-20 = 16 u of its value; a few roundings follow.
constexpr double kUlps = 32;

// On the CPU, as all expectations.
at::Tensor to_double(const at::Tensor& x) { return x.detach().cpu().to(at::kDouble); }

}  // namespace

void check(const Sizes& sizes, at::ScalarType dtype, at::ScalarType grad_dtype, RowLayout layout, std::uint64_t seed,
           at::Device device) {
  INFO(fmt::format("[{}] {} grad {} layout {}", fmt::join(sizes, ", "), c10::toString(dtype), c10::toString(grad_dtype),
                   static_cast<int>(layout)));
  Sizes half = sizes;
  half.back() /= 2;
  const at::Tensor packed = on(device, with_layout(normal(sizes, dtype, seed) * 3, layout));
  const at::Tensor grad = on(device, with_layout(normal(half, grad_dtype, seed + 1), layout));
  const at::Tensor y = ops::swiglu(packed);
  REQUIRE(y.device().type() == device.type());
  const at::Tensor p = to_double(packed).requires_grad_(), g = to_double(grad);
  const at::Tensor expected = ops::swiglu_reference(p);
  CHECK((y.scalar_type() == dtype && y.is_contiguous()));
  CHECK(worst_error(y, expected.detach(), expected.detach().abs(), dtype, kUlps) <= 1);

  const auto [grad_packed, again] = ops::swiglu_backward(grad, packed, /*with_output=*/true);
  CHECK(at::equal(again, y));
  CHECK_FALSE(std::get<1>(ops::swiglu_backward(grad, packed, false)).defined());
  const at::Tensor expected_grad = torch::autograd::grad({expected}, {p}, {g})[0];
  // s (1 + a (1 - s)): an error of s also enters through 1 - s, which may be small.
  const at::Tensor gate = p.detach().slice(-1, 0, half.back()), up = p.detach().slice(-1, half.back());
  const at::Tensor s = at::sigmoid(gate);
  const at::Tensor magnitude = at::cat({(g * up).abs() * s * (1 + gate.abs()), (g * gate).abs() * s}, -1);
  CHECK((grad_packed.scalar_type() == dtype && grad_packed.is_contiguous()));
  CHECK(worst_error(grad_packed, expected_grad, magnitude, dtype, kUlps) <= 1);

  if (grad_dtype == dtype) {
    at::Tensor in_place = packed.clone(at::MemoryFormat::Contiguous);
    at::Tensor to_output = grad.clone(at::MemoryFormat::Contiguous);
    ops::swiglu_backward_(in_place, to_output);
    CHECK(at::equal(in_place, grad_packed));
    CHECK(at::equal(to_output, y));
    const at::Tensor leaf = packed.detach().requires_grad_();
    CHECK(at::equal(torch::autograd::grad({ops::swiglu(leaf)}, {leaf}, {grad})[0], grad_packed));
  }
}

}  // namespace satformer::tests::swiglu_tests
