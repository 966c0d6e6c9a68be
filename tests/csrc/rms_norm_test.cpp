// The RMSNorm operators: the kernels against the composite definition in float64, which central differences hold.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/max.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/rms_norm.h"
#include "csrc/ops/rms_norm_reference.h"
#include "tests/catch.h"
#include "tests/csrc/operator_support.h"
#include "tests/csrc/rms_norm_support.h"

namespace satformer::tests::norm_tests {
namespace {

using torch::autograd::variable_list;

NormInputs double_inputs() {
  NormCase c;
  c.sizes = {2, 3, 5}, c.dtype = c.residual_dtype = c.out_dtype = c.weight_dtype = at::kDouble;
  return make_norm_inputs(c, 7);
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

}  // namespace

TEST_CASE("rms_norm: values and gradients for every mixture of dtypes", "[ops]") {
  std::uint64_t seed = 1;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const auto residual_dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const auto out_dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
        for (const auto weight_dtype : {at::kFloat, at::kBFloat16}) {
          check({{4, 3, 40}, dtype, residual_dtype, out_dtype, weight_dtype, kRowLayouts[seed % 4]}, seed);
          ++seed;
        }
      }
    }
  }
}

TEST_CASE("rms_norm: values and gradients for every size and layout", "[ops]") {
  const std::vector<Sizes> all{{1},      {7},       {1, 1}, {3, 1},    {2, 7},      {5, 64},   {2, 3, 37}, {4, 257},
                               {33, 31}, {6, 1536}, {0, 5}, {2, 0, 8}, {2, 2, 768}, {2100, 9}, {3, 5, 32}};
  std::uint64_t seed = 100;
  for (const Sizes& sizes : all) {
    for (const RowLayout layout : kRowLayouts) {
      check({sizes, at::kFloat, at::kFloat, at::kFloat, at::kFloat, layout}, seed++);
      check({sizes, at::kFloat, at::kBFloat16, at::kBFloat16, at::kFloat, layout}, seed++);
      check({sizes, at::kBFloat16, at::kBFloat16, at::kBFloat16, at::kBFloat16, layout}, seed++);
    }
  }
  const auto [y, inverse_rms] = ops::rms_norm(at::ones({3, 0}), at::ones({0}), kEps);
  CHECK(y.sizes() == at::IntArrayRef({3, 0}));
  CHECK(at::isnan(inverse_rms).all().item<bool>());  // the mean of nothing
}

TEST_CASE("rms_norm: the composite definition and the kernel agree with central differences", "[ops]") {
  for (const bool kernel : {false, true}) {
    const NormInputs in = double_inputs();
    for (const at::Tensor& leaf : {in.x, in.residual, in.weight}) leaf.requires_grad_();
    const auto value = [&] {
      const auto [sum, y, inverse_rms] = kernel ? ops::add_rms_norm(in.x, in.residual, in.weight, kEps)
                                                : ops::add_rms_norm_reference(in.x, in.residual, in.weight, kEps);
      return (sum * in.grad_sum).sum() + (y * in.grad_y).sum();
    };
    const variable_list leaves{in.x, in.residual, in.weight}, got = torch::autograd::grad({value()}, leaves);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      INFO("kernel " << kernel << " argument " << i);
      // step^2 and rounding / step: about 1e-10
      CHECK(largest_difference(got[i], central_differences(value, leaves[i])) < 1e-8);
    }
  }
}

TEST_CASE("rms_norm: second derivatives, and gradients of one output alone", "[ops]") {
  const NormInputs in = double_inputs();
  for (const at::Tensor& leaf : {in.x, in.residual, in.weight, in.grad_y}) leaf.requires_grad_();
  const variable_list leaves{in.x, in.residual, in.weight};
  const auto second = [&](const at::Tensor& y) {
    const variable_list first = torch::autograd::grad({y}, leaves, {in.grad_y}, std::nullopt, /*create_graph=*/true);
    const at::Tensor value = (first[0] * in.grad_sum).sum() + (first[2] * first[2]).sum();
    return torch::autograd::grad({value}, {in.x, in.residual, in.weight, in.grad_y});
  };
  const variable_list got = second(std::get<1>(ops::add_rms_norm(in.x, in.residual, in.weight, kEps))),
                      expected = second(std::get<1>(ops::add_rms_norm_reference(in.x, in.residual, in.weight, kEps)));
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(largest_difference(got[i], expected[i]) < 1e-12);

  const auto [sum, y, inverse_rms] = ops::add_rms_norm(in.x, in.residual, in.weight, kEps);
  const variable_list of_sum = torch::autograd::grad({sum}, leaves, {in.grad_sum}, true, false, /*allow_unused=*/true);
  CHECK(at::equal(of_sum[0], in.grad_sum));
  CHECK(at::equal(of_sum[1], in.grad_sum));
  CHECK_FALSE(of_sum[2].defined());
  const auto [plain, unused] = ops::rms_norm(in.x, in.weight, kEps);
  const auto [reference, unused_too] = ops::rms_norm_reference(in.x, in.weight, kEps);
  const variable_list a = torch::autograd::grad({plain}, {in.x, in.weight}, {in.grad_y.detach()}),
                      b = torch::autograd::grad({reference}, {in.x, in.weight}, {in.grad_y.detach()});
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(largest_difference(a[i], b[i]) < 1e-13);
}

TEST_CASE("rms_norm: the number of threads changes no bit", "[ops]") {
  NormCase c;
  c.sizes = {1000, 129};
  const NormInputs in = make_norm_inputs(c, 5);
  const auto results = with_threads([&] {
    const auto [sum, y, inverse_rms] = ops::add_rms_norm(in.x, in.residual, in.weight, kEps);
    const auto [grad_x, grad_weight, unused] =
        ops::rms_norm_backward(in.grad_y, in.grad_sum, sum, in.weight, inverse_rms);
    return variable_list{sum, y, inverse_rms, grad_x, grad_weight};
  });
  for (std::size_t i = 0; i < results[0].size(); ++i) CHECK(at::equal(results[0][i], results[1][i]));
}

TEST_CASE("rms_norm: wrong arguments are named with what was expected and what was got", "[ops]") {
  const at::Tensor x = at::ones({2, 3, 8}), weight = at::ones({8}), inverse = at::ones({2, 3, 1});
  const auto error = [&](const at::Tensor& residual, const at::Tensor& w, double eps, at::ScalarType dtype) {
    return message_of([&] { ops::add_rms_norm(x, residual, w, eps, dtype); });
  };
  const std::string op = "add_rms_norm: ";
  CHECK(error(x.slice(1, 0, 2), weight, 0, at::kFloat) == op + "residual must be [2, 3, 8] like x, got [2, 2, 8]");
  CHECK(error(x.to(at::kLong), weight, 0, at::kFloat) ==
        op + "residual must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(error(x, at::ones({7}), 0, at::kFloat) == op + "weight must be [8], the last dimension of the rows, got [7]");
  CHECK(error(x, weight, -1, at::kFloat) == op + "eps must not be negative, got -1");
  CHECK(error(x, weight, 0, at::kLong) ==
        op + "out_dtype must be float32, bfloat16 or float16 (float64 on CPU alone), got Long on cpu");
  CHECK(error(at::empty({2, 3, 8}, at::TensorOptions(at::kMeta)), weight, 0, at::kFloat) ==
        op + "residual must be on cpu like x, got meta");
  CHECK(message_of([&] { ops::rms_norm(at::ones({}), weight, 0); }) == "rms_norm: x must be [..., n], got []");
  CHECK(message_of([&] { ops::rms_norm_apply(x, weight, inverse.slice(1, 0, 2)); }) ==
        "rms_norm_apply: inverse_rms must be [2, 3, 1], one number for each row of sum, got [2, 2, 1]");
  CHECK(message_of([&] { ops::rms_norm_backward(x, {}, x, weight, inverse.to(at::kDouble)); }) ==
        "rms_norm_backward: inverse_rms must be Float for a sum of Float, got Double");
  CHECK(message_of([&] { ops::rms_norm_backward(x, weight, x, weight, inverse); }) ==
        "rms_norm_backward: grad_sum must be [2, 3, 8] like sum, got [8]");
}

TEST_CASE("rms_norm: schemas, dispatch keys, meta tensors, autocast", "[ops]") {
  CHECK(schema_of("add_rms_norm") ==
        "satformer::add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps, ScalarType? out_dtype=None) -> "
        "(Tensor sum, Tensor y, Tensor inverse_rms)");
  for (const char* name : {"rms_norm", "add_rms_norm", "rms_norm_apply", "rms_norm_backward"}) {
    INFO(name);
    CHECK(has_kernels(name, {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}));
  }
  for (const char* name : {"rms_norm", "add_rms_norm", "rms_norm_apply"}) {
    CHECK(has_kernels(name, {c10::DispatchKey::AutocastCPU, c10::DispatchKey::AutocastCUDA}));
  }
  const auto meta = [](at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::empty(sizes, at::TensorOptions(at::kMeta).dtype(dtype));
  };
  const auto [sum, y, inverse_rms] = ops::add_rms_norm(meta({5, 2, 8}, at::kFloat).transpose(0, 1),
                                                       meta({2, 5, 8}, at::kHalf), meta({8}, at::kFloat), 0, at::kHalf);
  CHECK((sum.is_meta() && sum.is_contiguous() && sum.sizes() == at::IntArrayRef({2, 5, 8})));
  CHECK((y.is_contiguous() && y.scalar_type() == at::kHalf));
  CHECK((inverse_rms.sizes() == at::IntArrayRef({2, 5, 1}) && inverse_rms.scalar_type() == at::kFloat));

  const NormInputs in = make_norm_inputs({}, 3);
  std::tuple<at::Tensor, at::Tensor, at::Tensor> cast;
  at::Tensor again;
  {
    const CPUAutocast autocast;
    cast = ops::add_rms_norm(in.x, in.residual, in.weight, kEps);
    again = ops::rms_norm_apply(std::get<0>(cast), in.weight, std::get<2>(cast));
    CHECK(std::get<0>(ops::rms_norm(in.x, in.weight, kEps, at::kFloat)).scalar_type() == at::kFloat);
    CHECK(std::get<0>(ops::rms_norm(in.x.to(at::kDouble), in.weight, kEps)).scalar_type() == at::kDouble);
  }
  const auto direct = ops::add_rms_norm(in.x, in.residual, in.weight, kEps, at::kBFloat16);
  CHECK(std::get<0>(cast).scalar_type() == at::kFloat);
  CHECK(std::get<1>(cast).scalar_type() == at::kBFloat16);
  CHECK(at::equal(std::get<1>(cast), std::get<1>(direct)));
  CHECK(at::equal(again, std::get<1>(direct)));
}

}  // namespace satformer::tests::norm_tests
