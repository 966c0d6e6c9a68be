// depth_weighted_sum and inverse_rms on a GPU: what the CPU's kernels are held to.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include "csrc/ops/depth_weighted_sum.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/depth_weighted_sum_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {
namespace {

DepthCase whole_case() {
  DepthCase c;
  c.B = 3, c.T = 150, c.d = 40, c.S = 5, c.C = 4, c.dtype = at::kBFloat16;
  c.base = c.source_norms = c.output_norms = true;
  return c;
}

}  // namespace

TEST_CASE("depth_weighted_sum_CUDA: values and gradients for every form, dtype and number of ways", "[ops][cuda]") {
  if (!has_cuda()) return;
  std::uint64_t seed = 500;
  for (const at::ScalarType dtype : kCudaDtypes) {
    for (const std::int64_t S : {1, 2, 5, 9}) {
      for (const std::int64_t C : {1, 3, 4, 8}) {
        for (int form = 0; form < 16; ++form) {
          DepthCase c;
          c.S = S, c.C = C, c.dtype = dtype, c.d = seed % 2 == 0 ? 21 : 64;
          c.per_token = form & 1, c.base = form & 2, c.source_norms = form & 4, c.output_norms = form & 8;
          c.strided = seed % 3 == 0;
          c.parameters_dtype = seed % 5 < 2 ? dtype : at::kFloat;
          check_depth_sum(c, seed++, at::kCUDA);
        }
      }
    }
  }
}

TEST_CASE("depth_weighted_sum_CUDA: values and gradients for every size", "[ops][cuda]") {
  if (!has_cuda()) return;
  constexpr std::array<std::array<std::int64_t, 5>, 11> kSizes{{{1, 1, 1, 1, 1},
                                                                {1, 2, 37, 5, 7},
                                                                {1, 70, 64, 13, 3},
                                                                {1, 3, 257, 2, 8},
                                                                {0, 3, 8, 2, 4},
                                                                {2, 0, 8, 2, 1},
                                                                {3, 43, 16, 4, 5},
                                                                {1, 2, 1000, 3, 4},
                                                                {2, 5, 2048, 4, 4},
                                                                {2, 1100, 24, 3, 4},
                                                                {1, 2, 8, 64, 2}}};
  std::uint64_t seed = 900;
  for (const at::ScalarType dtype : kCudaDtypes) {
    for (const auto& [B, T, d, S, C] : kSizes) {
      for (const bool norms : {false, true}) {
        DepthCase c;
        c.B = B, c.T = T, c.d = d, c.S = S, c.C = C, c.dtype = dtype;
        c.source_norms = norms, c.output_norms = norms, c.base = norms, c.per_token = seed % 2 == 0;
        check_depth_sum(c, seed++, at::kCUDA);
      }
    }
  }
}

TEST_CASE("inverse_rms_CUDA: values and gradients for every dtype and size", "[ops][cuda]") {
  if (!has_cuda()) return;
  for (const at::ScalarType dtype : kCudaDtypes) {
    for (const auto& shape :
         std::vector<std::vector<std::int64_t>>{{7}, {3, 1}, {2, 3, 33}, {0, 4}, {130, 256}, {9, 2050}}) {
      check_inverse_rms(shape, dtype, at::kCUDA);
    }
  }
}

TEST_CASE("depth_weighted_sum_CUDA: repeated runs, and sources' gradients that are added, give the same bits",
          "[ops][cuda]") {
  if (!has_cuda()) return;
  for (const bool per_token : {false, true}) {
    DepthCase c = whole_case();
    c.per_token = per_token;
    const ops::DepthSum sum = on(at::kCUDA, make_depth_sum(c, 4));
    const std::vector<at::Tensor> grads = on(at::kCUDA, make_depth_grads(c, 4));
    const auto first = ops::tensors_of(ops::depth_weighted_sum_backward(grads, sum)),
               second = ops::tensors_of(ops::depth_weighted_sum_backward(grads, sum));
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(at::equal(first[i], second[i]));
    std::vector<at::Tensor> buffers;
    for (const at::Tensor& x : sum.sources) buffers.push_back(at::zeros_like(x));
    const ops::DepthSumGradients others = ops::depth_weighted_sum_backward_(buffers, grads, sum);
    for (std::size_t j = 0; j < buffers.size(); ++j) CHECK(at::equal(buffers[j], first[j]));
    CHECK(at::equal(others.weights, first[buffers.size()]));
  }
}

TEST_CASE("depth_weighted_sum_CUDA: devices and sizes that it refuses", "[ops][cuda]") {
  if (!has_cuda()) return;
  const ops::DepthSum cpu = make_depth_sum(DepthCase{}, 1);
  ops::DepthSum sum = on(at::kCUDA, cpu);
  sum.weights = cpu.weights;
  CHECK(message_of([&] { ops::depth_weighted_sum(sum); }) ==
        "depth_weighted_sum: weights must be on cuda:0 like sources[0], got cpu");
  DepthCase many;
  many.S = 65;
  CHECK(message_of([&] { ops::depth_weighted_sum(on(at::kCUDA, make_depth_sum(many, 1))); }) ==
        "depth_weighted_sum: sources must hold at most 64 tensors on CUDA, got 65");
  DepthCase wide;
  wide.C = 9;
  CHECK(message_of([&] { ops::depth_weighted_sum(on(at::kCUDA, make_depth_sum(wide, 1))); }) ==
        "depth_weighted_sum: weights must have at most 8 ways on CUDA, got 9");
}

}  // namespace satformer::tests
