// The SwiGLU operators: the kernels against the composite definition in float64, which central differences hold.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/max.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "csrc/ops/swiglu.h"
#include "csrc/ops/swiglu_reference.h"
#include "tests/catch.h"
#include "tests/csrc/operator_support.h"
#include "tests/csrc/swiglu_support.h"

namespace satformer::tests::swiglu_tests {
namespace {

using torch::autograd::variable_list;

at::Tensor in_double(const at::Tensor& x) { return x.detach().to(at::kDouble); }

}  // namespace

TEST_CASE("swiglu: values and gradients for every dtype, size and layout", "[ops]") {
  const std::vector<Sizes> all{{2},      {14},      {1, 2}, {3, 2},    {2, 14}, {5, 128},     {2, 3, 74},
                               {4, 514}, {6, 6144}, {0, 6}, {2, 0, 8}, {3, 0},  {2, 2, 2050}, {3, 5, 62}};
  std::uint64_t seed = 1;
  for (const Sizes& sizes : all) {
    for (const RowLayout layout : kRowLayouts) {
      for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble})
        check(sizes, dtype, dtype, layout, seed++);
      check(sizes, at::kBFloat16, at::kFloat, layout, seed++);
    }
  }
}

TEST_CASE("swiglu: large gates overflow nothing, NaN stays NaN", "[ops]") {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    INFO(c10::toString(dtype));
    const at::Tensor gate = at::tensor({-1e30, -1000., -100., -80., 0., 80., 1000., 1e30}, at::kDouble).to(dtype);
    const at::Tensor packed = at::cat({gate, at::ones({8}, gate.options())});
    const at::Tensor y = in_double(ops::swiglu(packed)), expected = ops::swiglu_reference(in_double(packed));
    // Where exp(-gate) overflows float32 the sigmoid is at most 2^-127: gate / 2^127 is left of 0.
    const at::Tensor allowed = expected.abs() * 0x1p-7 + in_double(gate).abs() * 0x1p-126;
    CHECK(((y - expected).abs() <= allowed).all().item<bool>());
    CHECK(at::isfinite(std::get<0>(ops::swiglu_backward(at::ones_like(gate), packed, false))).all().item<bool>());
    const at::Tensor nan = at::full({2, 2}, std::numeric_limits<double>::quiet_NaN(), gate.options());
    CHECK(at::isnan(ops::swiglu(nan)).all().item<bool>());
    CHECK(
        at::isnan(std::get<0>(ops::swiglu_backward(at::ones({2, 1}, gate.options()), nan, false))).all().item<bool>());
  }
}

TEST_CASE("swiglu: central differences and second derivatives", "[ops]") {
  const at::Tensor packed = normal({3, 10}, at::kDouble, 1).requires_grad_(), grad = normal({3, 5}, at::kDouble, 2);
  for (const bool kernel : {false, true}) {
    const auto value = [&] { return ((kernel ? ops::swiglu(packed) : ops::swiglu_reference(packed)) * grad).sum(); };
    const at::Tensor got = torch::autograd::grad({value()}, {packed})[0];
    // step^2 and rounding / step: about 1e-10
    CHECK((got - central_differences(value, packed)).abs().max().item<double>() < 1e-8);
  }
  grad.requires_grad_();
  const auto second = [&](const at::Tensor& y) {
    const at::Tensor first = torch::autograd::grad({y}, {packed}, {grad}, std::nullopt, /*create_graph=*/true)[0];
    return torch::autograd::grad({(first * first).sum()}, {packed, grad});
  };
  const variable_list got = second(ops::swiglu(packed)), expected = second(ops::swiglu_reference(packed));
  for (std::size_t i = 0; i < got.size(); ++i) CHECK((got[i] - expected[i]).abs().max().item<double>() < 1e-12);
  const auto [a, b] = ops::swiglu_backward_reference(grad.detach(), packed.detach(), true);
  const auto [c, d] = ops::swiglu_backward(grad.detach(), packed.detach(), true);
  CHECK((a - c).abs().max().item<double>() < 1e-14);
  CHECK((b - d).abs().max().item<double>() < 1e-14);
}

TEST_CASE("swiglu: the number of threads changes no bit", "[ops]") {
  const at::Tensor packed = normal({500, 514}, at::kFloat, 1), grad = normal({500, 257}, at::kFloat, 2);
  const auto results = with_threads([&] {
    const auto [grad_packed, y] = ops::swiglu_backward(grad, packed, true);
    return variable_list{ops::swiglu(packed), grad_packed, y};
  });
  for (std::size_t i = 0; i < results[0].size(); ++i) CHECK(at::equal(results[0][i], results[1][i]));
}

TEST_CASE("swiglu: errors, schemas, dispatch keys, meta tensors, autocast", "[ops]") {
  const at::Tensor packed = at::ones({2, 8});
  CHECK(message_of([&] { ops::swiglu(at::ones({2, 7})); }) == "swiglu: packed must be [..., 2f], got [2, 7]");
  CHECK(message_of([&] { ops::swiglu(at::ones({})); }) == "swiglu: packed must be [..., 2f], got []");
  CHECK(message_of([&] { ops::swiglu(packed.to(at::kLong)); }) ==
        "swiglu: packed must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(message_of([&] { ops::swiglu_backward(packed, packed, false); }) ==
        "swiglu_backward: grad must be [2, 4], half of packed, got [2, 8]");
  CHECK(message_of([&] { ops::swiglu_backward(at::empty({2, 4}, at::TensorOptions(at::kMeta)), packed, false); }) ==
        "swiglu_backward: grad must be on cpu like packed, got meta");

  at::Tensor x = at::ones({2, 8}), g = at::ones({2, 4}), wide = at::ones({2, 8}, at::kDouble);
  CHECK(message_of([&] { ops::swiglu_backward_(x, x); }) ==
        "swiglu_backward_: grad must be [2, 4], half of packed, got [2, 8]");
  CHECK(message_of([&] { ops::swiglu_backward_(wide, g); }) ==
        "swiglu_backward_: grad must be Double like packed, got Float");
  at::Tensor columns = at::ones({8, 2}).t();
  CHECK(message_of([&] { ops::swiglu_backward_(columns, g); }) ==
        "swiglu_backward_: packed must be contiguous, got strides [1, 2]");
  at::Tensor part = x.view({-1}).narrow(0, 0, 8).view({2, 4});
  CHECK(message_of([&] { ops::swiglu_backward_(x, part); }) ==
        "swiglu_backward_: grad must not share memory with packed, both are overwritten");
  at::Tensor leaf = at::ones({2, 4}).requires_grad_();
  CHECK(message_of([&] { ops::swiglu_backward_(x, leaf); }) ==
        "swiglu_backward_: has no derivative; call swiglu_backward");
  CHECK(at::equal(x, at::ones({2, 8})));
  const auto version = x._version();
  ops::swiglu_backward_(x, g);
  CHECK(x._version() > version);

  CHECK(schema_of("swiglu") == "satformer::swiglu(Tensor packed) -> Tensor");
  CHECK(schema_of("swiglu_backward") ==
        "satformer::swiglu_backward(Tensor grad, Tensor packed, bool with_output) -> (Tensor, Tensor)");
  CHECK(schema_of("swiglu_backward_") == "satformer::swiglu_backward_(Tensor(a!) packed, Tensor(b!) grad) -> ()");
  for (const char* name : {"swiglu", "swiglu_backward", "swiglu_backward_"}) {
    CHECK(has_kernels(name, {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}));
  }
  CHECK(has_kernels("swiglu", {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA}));

  const at::Tensor meta = at::empty({3, 2, 8}, at::TensorOptions(at::kMeta).dtype(at::kHalf)).transpose(0, 1);
  const at::Tensor y = ops::swiglu(meta);
  CHECK((y.is_meta() && y.is_contiguous() && y.scalar_type() == at::kHalf));
  CHECK(y.sizes() == at::IntArrayRef({2, 3, 4}));
  CHECK(std::get<0>(ops::swiglu_backward(y, meta, false)).sizes() == meta.sizes());

  at::Tensor cast;
  {
    const CPUAutocast autocast;
    cast = ops::swiglu(packed);
  }
  CHECK(at::equal(cast, ops::swiglu(packed.to(at::kBFloat16))));
}

}  // namespace satformer::tests::swiglu_tests
