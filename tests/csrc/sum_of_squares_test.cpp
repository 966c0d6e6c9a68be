// sum_of_squares against exact sums and against the composite definition.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cmath>
#include <limits>

#include "csrc/ops/sum_of_squares.h"
#include "csrc/ops/sum_of_squares_reference.h"
#include "tests/catch.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests::sum_of_squares_tests {
namespace {

constexpr std::array<at::ScalarType, 4> kDtypes{at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};
constexpr std::array<std::int64_t, 14> kSizes{0, 1, 2, 15, 16, 17, 511, 512, 513, 8191, 8192, 8193, 16384, 70001};

double sum(const std::vector<at::Tensor>& tensors) {
  const at::Tensor result = ops::sum_of_squares(tensors);
  CHECK((result.dim() == 0 && result.scalar_type() == at::kDouble));
  return result.item<double>();
}

// Off by at most a rounding for each number, in float64.
void check_close(const std::vector<at::Tensor>& tensors) {
  double numbers = 0;
  for (const at::Tensor& x : tensors) numbers += static_cast<double>(x.numel());
  const double expected = ops::sum_of_squares_reference(tensors).item<double>();
  CHECK(std::abs(sum(tensors) - expected) <= 2 * (numbers + 1) * 0x1p-53 * expected);
}

}  // namespace

TEST_CASE("sum_of_squares: whole numbers are exact in every dtype and size", "[ops]") {
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t n : kSizes) {
      INFO(c10::toString(dtype) << " " << n);
      // -6 .. 6 in turn; every square, every sum is a whole number below 2^53.
      const at::Tensor x = at::sub(at::remainder(at::arange(n, at::kLong), 13), 6).to(dtype);
      std::int64_t expected = 0;
      for (std::int64_t i = 0; i < n; ++i) expected += (i % 13 - 6) * (i % 13 - 6);
      CHECK(sum({x}) == static_cast<double>(expected));
      CHECK(sum({x, at::full({}, 3, dtype), x}) == static_cast<double>(2 * expected + 9));
    }
  }
}

TEST_CASE("sum_of_squares: normal numbers, many tensors, mixed dtypes, any strides", "[ops]") {
  std::vector<at::Tensor> all;
  for (std::uint64_t i = 0; i < 250; ++i) {
    const auto n = static_cast<std::int64_t>(i * 37 % 300);
    const at::Tensor x = normal({n}, kDtypes.at(i % kDtypes.size()), i + 1);
    check_close({x});
    all.push_back(x);
  }
  check_close(all);
  for (const RowLayout layout : kRowLayouts) {
    for (const at::ScalarType dtype : kDtypes) check_close({with_layout(normal({7, 5, 30}, dtype, 3), layout)});
  }
  CHECK(sum({at::full({1, 1}, 2.0F).expand({5, 7})}) == 4 * 35);
}

TEST_CASE("sum_of_squares: nothing to sum", "[ops]") {
  CHECK(sum({}) == 0);
  CHECK(sum({at::zeros({0}), at::zeros({3, 0}, at::kHalf)}) == 0);
}

TEST_CASE("sum_of_squares: the range of float32 is no limit; infinities and NaN come through", "[ops]") {
  const double large = 0x1p127, small = 0x1p-140;  // the largest power of 2 in float32; a subnormal one
  CHECK(sum({at::full({1024}, large)}) == 1024 * large * large);
  CHECK(sum({at::full({1024}, small)}) == 1024 * small * small);
  for (const at::ScalarType dtype : kDtypes) {
    for (const std::int64_t place : {0, 515, 1023}) {
      const at::Tensor x = at::ones({1024}, dtype);
      x[place].fill_(-std::numeric_limits<double>::infinity());
      CHECK(sum({at::ones({3}), x}) == std::numeric_limits<double>::infinity());
      x[place].fill_(std::numeric_limits<double>::quiet_NaN());
      CHECK(std::isnan(sum({at::ones({3}), x})));
    }
  }
}

TEST_CASE("sum_of_squares: the number of threads changes no bit", "[ops]") {
  const std::vector<at::Tensor> tensors{normal({100001}, at::kFloat, 1), normal({9}, at::kDouble, 2),
                                        normal({70000}, at::kBFloat16, 3), normal({50000}, at::kDouble, 4)};
  const auto results = with_threads([&] { return std::vector<at::Tensor>{ops::sum_of_squares(tensors)}; });
  CHECK(results[0][0].item<double>() == results[1][0].item<double>());
}

TEST_CASE("sum_of_squares: errors, schema, dispatch keys, meta tensors, autograd", "[ops]") {
  const at::Tensor x = at::ones({3});
  CHECK(message_of([&] { ops::sum_of_squares({x, x.to(at::kLong)}); }) ==
        "sum_of_squares: tensors[1] must be float32, bfloat16, float16 or float64, got Long");
  CHECK(message_of([&] { ops::sum_of_squares({x, at::empty({2}, at::TensorOptions(at::kMeta))}); }) ==
        "sum_of_squares: tensors[1] must be on cpu like tensors[0], got meta");
  CHECK(message_of([&] { ops::sum_of_squares({x, at::Tensor()}); }) ==
        "sum_of_squares: tensors[1] must be a tensor, got an undefined one");

  CHECK(schema_of("sum_of_squares") == "satformer::sum_of_squares(Tensor[] tensors) -> Tensor");
  CHECK(has_kernels("sum_of_squares", {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::Autograd}));
  const at::Tensor meta = ops::sum_of_squares({at::empty({3, 2}, at::TensorOptions(at::kMeta).dtype(at::kHalf))});
  CHECK((meta.is_meta() && meta.dim() == 0 && meta.scalar_type() == at::kDouble));

  const at::Tensor leaf = at::full({2}, 3.0F).requires_grad_();
  CHECK(message_of([&] { ops::sum_of_squares({x, leaf}); }) ==
        "sum_of_squares: has no derivative, but tensors[1] requires grad; call it under no_grad, or use the composite "
        "reference");
  {
    const at::NoGradGuard no_grad;
    CHECK(sum({x, leaf}) == 21);
  }
  const at::Tensor gradient = torch::autograd::grad({ops::sum_of_squares_reference({x, leaf})}, {leaf})[0];
  CHECK(gradient[0].item<float>() == 6);
}

}  // namespace satformer::tests::sum_of_squares_tests
