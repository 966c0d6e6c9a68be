// The SwiGLU operators on a GPU: what the CPU's kernels are held to.
#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include "csrc/ops/swiglu.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/swiglu_support.h"

namespace satformer::tests::swiglu_tests {

TEST_CASE("swiglu_CUDA: values and gradients for every dtype, size and layout", "[ops][cuda]") {
  if (!has_cuda()) return;
  const std::vector<Sizes> all{{2},       {14},   {3, 2},    {2, 14},      {5, 128},  {2, 3, 74}, {4, 514},
                               {6, 6144}, {0, 6}, {2, 0, 8}, {2, 2, 2050}, {1000, 6}, {3, 0},     {700, 1024}};
  std::uint64_t seed = 100;
  for (const Sizes& sizes : all) {
    for (const RowLayout layout : kRowLayouts) {
      for (const auto dtype : kCudaDtypes) {
        for (const auto grad_dtype : kCudaDtypes) check(sizes, dtype, grad_dtype, layout, seed++, at::kCUDA);
      }
    }
  }
}

TEST_CASE("swiglu_CUDA: large gates overflow nothing", "[ops][cuda]") {
  if (!has_cuda()) return;
  const at::Tensor packed = at::tensor({-1e30F, -1000.F, -80.F, 0.F, 80.F, 1e30F, 1.F, 1.F, 1.F, 1.F, 1.F, 1.F}).cuda();
  const auto [grad, y] = ops::swiglu_backward(at::ones({6}, at::kCUDA), packed, /*with_output=*/true);
  CHECK(at::isfinite(y).all().item<bool>());
  CHECK(at::isfinite(grad).all().item<bool>());
}

TEST_CASE("swiglu_CUDA: devices and dtypes that it refuses", "[ops][cuda]") {
  if (!has_cuda()) return;
  const at::Tensor packed = at::ones({2, 8}), grad = at::ones({2, 4});
  CHECK(message_of([&] { ops::swiglu_backward(grad.cuda(), packed, false); }) ==
        "swiglu_backward: grad must be on cpu like packed, got cuda:0");
  CHECK(message_of([&] { ops::swiglu(packed.cuda().to(at::kDouble)); }) ==
        "swiglu: packed must be float32, bfloat16 or float16 (float64 on CPU alone), got Double on cuda:0");
}

}  // namespace satformer::tests::swiglu_tests
