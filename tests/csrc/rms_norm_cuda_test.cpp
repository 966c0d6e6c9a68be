// The RMSNorm operators on a GPU: what the CPU's kernels are held to.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>

#include "csrc/ops/rms_norm.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/rms_norm_support.h"

namespace satformer::tests::norm_tests {

TEST_CASE("rms_norm_CUDA: values and gradients for every mixture of dtypes", "[ops][cuda]") {
  if (!has_cuda()) return;
  std::uint64_t seed = 1;
  for (const auto dtype : kCudaDtypes) {
    for (const auto residual_dtype : kCudaDtypes) {
      for (const auto out_dtype : kCudaDtypes) {
        for (const auto weight_dtype : kCudaDtypes) {
          check({{4, 3, 40}, dtype, residual_dtype, out_dtype, weight_dtype, kRowLayouts[seed % 4]}, seed, at::kCUDA);
          ++seed;
        }
      }
    }
  }
}

TEST_CASE("rms_norm_CUDA: values and gradients for every size and layout", "[ops][cuda]") {
  if (!has_cuda()) return;
  // 8192 is the longest row of the kernels; longer ones take the composite definition.
  const std::vector<Sizes> all{{1},     {7},       {3, 1}, {2, 3, 37}, {4, 257},    {33, 31},
                               {0, 5},  {6, 1536}, {9, 8}, {2100, 9},  {2, 0, 8},   {5000, 64},
                               {3, 74}, {2, 8192}, {5, 3}, {2, 8191},  {2, 2, 768}, {700, 2050}};
  std::uint64_t seed = 200;
  for (const Sizes& sizes : all) {
    for (const RowLayout layout : kRowLayouts) {
      for (const auto dtype : kCudaDtypes) check({sizes, dtype, dtype, dtype, dtype, layout}, seed++, at::kCUDA);
      check({sizes, at::kFloat, at::kBFloat16, at::kBFloat16, at::kFloat, layout}, seed++, at::kCUDA);
    }
  }
  check({{3, 8193}}, seed, at::kCUDA);
  const at::Tensor x = at::ones({3, 0}, at::kCUDA), weight = at::ones({0}, at::kCUDA);
  CHECK(at::isnan(std::get<1>(ops::rms_norm(x, weight, kEps))).all().item<bool>());  // the mean of nothing
}

TEST_CASE("rms_norm_CUDA: the same bits every time", "[ops][cuda]") {
  if (!has_cuda()) return;
  NormCase c;
  c.sizes = {3001, 257}, c.dtype = c.residual_dtype = c.out_dtype = at::kBFloat16;
  const NormInputs in = make_norm_inputs(c, 3);
  const auto run = [&] {
    const auto [sum, y, inverse_rms] =
        ops::add_rms_norm(in.x.cuda(), in.residual.cuda(), in.weight.cuda(), kEps, c.out_dtype);
    const auto [grad_x, grad_weight, unused] =
        ops::rms_norm_backward(in.grad_y.cuda(), in.grad_sum.cuda(), sum, in.weight.cuda(), inverse_rms);
    return std::vector<at::Tensor>{sum, y, inverse_rms, grad_x, grad_weight};
  };
  const auto first = run(), second = run();
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i], second[i]));
}

TEST_CASE("rms_norm_CUDA: devices and dtypes that it refuses", "[ops][cuda]") {
  if (!has_cuda()) return;
  const at::Tensor x = at::ones({2, 8}), weight = at::ones({8}), inverse = at::ones({2, 1});
  CHECK(message_of([&] { ops::rms_norm(x, weight.cuda(), kEps); }) ==
        "rms_norm: weight must be on cpu like x, got cuda:0");
  CHECK(message_of([&] { ops::add_rms_norm(x.cuda(), x, weight.cuda(), kEps); }) ==
        "add_rms_norm: residual must be on cuda:0 like x, got cpu");
  CHECK(message_of([&] { ops::rms_norm_apply(x.cuda(), weight.cuda(), inverse); }) ==
        "rms_norm_apply: inverse_rms must be on cuda:0 like sum, got cpu");
  CHECK(message_of([&] { ops::rms_norm_backward(x.cuda(), {}, x, weight, inverse); }) ==
        "rms_norm_backward: grad_y must be on cpu like sum, got cuda:0");
  CHECK(message_of([&] { ops::rms_norm(x.cuda().to(at::kDouble), weight.cuda(), kEps); }) ==
        "rms_norm: x must be float32, bfloat16 or float16 (float64 on CPU alone), got Double on cuda:0");
}

}  // namespace satformer::tests::norm_tests
