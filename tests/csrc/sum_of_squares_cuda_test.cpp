// sum_of_squares on a GPU against the composite definition on the CPU.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>

#include <array>
#include <cmath>

#include "csrc/ops/sum_of_squares.h"
#include "csrc/ops/sum_of_squares_reference.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests::sum_of_squares_tests {

TEST_CASE("sum_of_squares_CUDA: every dtype and size, the same bits in every run", "[ops][cuda]") {
  if (!has_cuda()) return;
  constexpr std::array<at::ScalarType, 4> kEveryDtype{at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};
  std::vector<at::Tensor> tensors, gpu;
  double numbers = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto n = static_cast<std::int64_t>(i % 40 == 39 ? 100003 : i * 37 % 300);
    const at::ScalarType dtype = kEveryDtype.at(i % kEveryDtype.size());
    tensors.push_back(normal({n}, dtype, i + 1));
    gpu.push_back(to_cuda(tensors.back()));
    numbers += static_cast<double>(n);
  }
  const at::Tensor got = ops::sum_of_squares(gpu);
  REQUIRE(got.is_cuda());
  const double expected = ops::sum_of_squares_reference(tensors).item<double>();
  CHECK(std::abs(got.item<double>() - expected) <= 2 * numbers * 0x1p-53 * expected);
  for (int run = 0; run < 5; ++run) CHECK(at::equal(ops::sum_of_squares(gpu), got));
  CHECK(ops::sum_of_squares({gpu[0]}).item<double>() == 0);  // empty
}

}  // namespace satformer::tests::sum_of_squares_tests
