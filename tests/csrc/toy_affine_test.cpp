// A whole operator in the files of docs/adding_an_operator.md: values, gradients, meta, autocast, errors.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/max.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/catch.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/operator_support.h"
#include "tests/csrc/struct_support.h"
#include "tests/csrc/toy_affine.h"
#include "tests/csrc/toy_affine_reference.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::toy {
namespace {

Affine make(at::ScalarType dtype, bool with_bias, RowLayout layout = RowLayout::kContiguous) {
  Affine in;
  in.x = with_layout(normal({2, 3, 5}, dtype, 1), layout);
  if (with_bias) in.bias = normal({5}, dtype, 2);
  in.factor = 1.5;
  return in;
}

}  // namespace

TEST_CASE("toy_affine: values in every dtype and layout", "[ops]") {
  CHECK(schema_of("toy_affine") == "satformer::toy_affine(Tensor x, Tensor? bias=None, float factor=1.) -> Tensor");
  for (const at::ScalarType dtype : kValueDtypes) {
    for (const RowLayout layout : kRowLayouts) {
      for (const bool with_bias : {false, true}) {
        const Affine in = make(dtype, with_bias, layout), d = to_double(in);
        const at::Tensor expected = toy_affine_reference(d);
        const at::Tensor magnitude = 1.5 * d.x.abs() + (with_bias ? d.bias->abs() : 0 * d.x);
        CHECK(worst_error(toy_affine(in), expected, magnitude, dtype) <= 1);
      }
    }
  }
}

TEST_CASE("toy_affine: gradients, twice", "[ops]") {
  for (const bool with_bias : {false, true}) {
    const Affine in = leaves(make(at::kDouble, with_bias));
    const std::vector<at::Tensor> tensors = ops::tensors_of(in);
    const at::Tensor weights = normal({2, 3, 5}, at::kDouble, 3).requires_grad_();
    const auto grads = torch::autograd::grad({toy_affine(in)}, tensors, {weights}, {}, /*create_graph=*/true);
    const auto expected = torch::autograd::grad({toy_affine_reference(in)}, tensors, {weights});
    for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(relative_difference(grads[i], expected[i]) < 1e-15);
    const at::Tensor second = torch::autograd::grad({grads[0].sum()}, {weights})[0];
    CHECK(at::equal(second, 0 * weights + 1.5));
  }
  Affine bias_alone = make(at::kFloat, true);
  bias_alone.bias->requires_grad_();
  CHECK(torch::autograd::grad({toy_affine(bias_alone)}, {*bias_alone.bias}, {at::ones({2, 3, 5})})[0].sizes() ==
        at::IntArrayRef{5});
}

TEST_CASE("toy_affine: meta, autocast and errors", "[ops]") {
  const Affine in = make(at::kFloat, true);
  const Affine meta =
      ops::map_tensors(in, [](const at::Tensor& x) { return at::empty(x.sizes(), x.options().device(at::kMeta)); });
  CHECK(toy_affine(meta).is_meta());
  CHECK(toy_affine(meta).sizes() == in.x.sizes());
  {
    const CPUAutocast autocast;
    CHECK(toy_affine(in).scalar_type() == at::kBFloat16);
  }
  Affine wrong = in;
  wrong.bias = at::empty({4});
  CHECK(message_of([&] { toy_affine(wrong); }) == "toy_affine: bias must be [5], the last dimension of x, got [4]");
}

}  // namespace satformer::tests::toy
