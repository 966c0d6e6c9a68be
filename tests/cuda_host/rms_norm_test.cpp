// rms_norm's CUDA kernels and launchers against the formulas of csrc/ops/rms_norm.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/rms_norm.cu"
#include "tests/cuda_host/row_matrix.h"

namespace satformer::ops::cuda {
namespace {

using cuda_host::Expected;

constexpr double kEps = 1e-5;

std::string text(int64_t rows, int64_t n, RowLayout layout) { return text_of(rows, "n", n, layout); }

// x: the stream's type, R: the residual's, Y: y's.
template <typename X, typename R, typename Y>
void check_norm(int64_t rows, int64_t n, RowLayout layout) {
  const double ulps = 16 + static_cast<double>(n);  // a sum of n squares, and a few roundings
  const RowMatrix<X> x("x", rows, n, layout, 1);
  const RowMatrix<R> residual("residual", rows, n, layout, 2);
  const RowMatrix<float> weight("weight", 1, n, layout, 3);
  RowMatrix<X> sum("sum", rows, n, layout);
  RowMatrix<Y> y("y", rows, n, layout), plain("y", rows, n, layout), again("y", rows, n, layout);
  RowMatrix<float> inverse("inverse_rms", 1, rows, RowLayout::kDense),
      unused("inverse_rms", 1, rows, RowLayout::kDense);
  NormArguments a{rows,
                  n,
                  x.input(),
                  residual.input(),
                  weight.input(),
                  static_cast<float>(kEps),
                  sum.output(),
                  y.output(),
                  const_cast<float*>(inverse.data()),
                  nullptr};
  CHECK(launch_norm(a, nullptr) == cudaSuccess, text(rows, n, layout));
  CHECK_CLOSE(text(rows, n, layout) + "sum", sum.data(), sum.expect([&](int64_t i, int64_t j) {
    return Expected{x(i, j) + residual(i, j), std::fabs(x(i, j) + residual(i, j))};
  }),
              1);
  // From the rounded sum.
  const auto inverse_of = [&](int64_t i) {
    double squares = 0;
    for (int64_t j = 0; j < n; ++j) squares += sum.now(i, j) * sum.now(i, j);
    return 1 / std::sqrt(squares / static_cast<double>(n) + kEps);
  };
  std::vector<double> inverses;
  for (int64_t i = 0; i < rows; ++i) inverses.push_back(inverse_of(i));
  const auto y_of = [&](int64_t i, int64_t j) {
    const double value = sum.now(i, j) * inverses[static_cast<size_t>(i)] * weight(0, j);
    return Expected{value, std::fabs(value)};
  };
  CHECK_CLOSE(text(rows, n, layout) + "inverse_rms", inverse.data(), inverse.expect([&](int64_t, int64_t i) {
    return Expected{inverses[static_cast<size_t>(i)], inverses[static_cast<size_t>(i)]};
  }),
              ulps);
  CHECK_CLOSE(text(rows, n, layout) + "y", y.data(), y.expect(y_of), ulps);

  // rms_norm and rms_norm_apply of the sum: no residual, no sum; the kept inverse.
  NormArguments b{rows,
                  n,
                  sum.input(),
                  {},
                  weight.input(),
                  static_cast<float>(kEps),
                  {},
                  plain.output(),
                  const_cast<float*>(unused.data()),
                  nullptr};
  CHECK(launch_norm(b, nullptr) == cudaSuccess, text(rows, n, layout));
  CHECK_CLOSE(text(rows, n, layout) + "rms_norm", plain.data(), plain.expect(y_of), ulps);
  b.y = again.output();
  b.inverse_rms = nullptr;
  b.given_inverse = inverse.data();
  CHECK(launch_norm(b, nullptr) == cudaSuccess, text(rows, n, layout));
  CHECK_CLOSE(text(rows, n, layout) + "rms_norm_apply", again.data(),
              again.expect([&](int64_t i, int64_t j) { return Expected{y.now(i, j), 0}; }), 0);
}

template <typename X, typename G, typename R, typename W>
void check_backward(int64_t rows, int64_t n, int64_t rows_a_block, bool with_grad_sum, RowLayout layout) {
  const std::string where = text(rows, n, layout) + "rows a block " + std::to_string(rows_a_block) + ": ";
  const double ulps = 16 + static_cast<double>(n),
               blocks = static_cast<double>((rows + rows_a_block - 1) / rows_a_block);
  const RowMatrix<X> x("sum", rows, n, layout, 1), grad_sum("grad_sum", rows, n, layout, 2);
  const RowMatrix<G> grad("grad_y", rows, n, layout, 3);
  const RowMatrix<float> weight("weight", 1, n, layout, 4), inverse("inverse_rms", 1, rows, RowLayout::kDense, 5);
  RowMatrix<X> grad_x("grad_x", rows, n, layout);
  RowMatrix<R> grad_residual("grad_residual", rows, n, layout);
  RowMatrix<W> grad_weight("grad_weight", 1, n, RowLayout::kDense);
  RowMatrix<float> partial("partial_sums", static_cast<int64_t>(blocks), n, RowLayout::kDense);
  NormBackwardArguments a{rows,
                          n,
                          rows_a_block,
                          grad.input(),
                          with_grad_sum ? grad_sum.input() : Input{},
                          x.input(),
                          weight.input(),
                          inverse.data(),
                          grad_x.output(),
                          grad_residual.output(),
                          const_cast<float*>(partial.data()),
                          grad_weight.output()};
  CHECK(launch_norm_backward(a, nullptr) == cudaSuccess, where);
  std::vector<double> dots, sizes;
  for (int64_t i = 0; i < rows; ++i) {
    double dot = 0, size = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double product = grad(i, j) * weight(0, j) * x(i, j);
      dot += product;
      size += std::fabs(product);
    }
    dots.push_back(dot / static_cast<double>(n));
    sizes.push_back(size / static_cast<double>(n));
  }
  const auto grad_x_of = [&](int64_t i, int64_t j) {
    const double r = inverse(0, i), g = grad(i, j) * weight(0, j), through = with_grad_sum ? grad_sum(i, j) : 0;
    return Expected{through + r * (g - x(i, j) * r * r * dots[static_cast<size_t>(i)]),
                    std::fabs(through) +
                        std::fabs(r) * (std::fabs(g) + std::fabs(x(i, j)) * r * r * sizes[static_cast<size_t>(i)])};
  };
  CHECK_CLOSE(where + "grad_x", grad_x.data(), grad_x.expect(grad_x_of), ulps);
  CHECK_CLOSE(where + "grad_residual", grad_residual.data(), grad_residual.expect(grad_x_of), ulps);
  CHECK_CLOSE(where + "grad_weight", grad_weight.data(), grad_weight.expect([&](int64_t, int64_t j) {
    Expected e{0, 0};
    for (int64_t i = 0; i < rows; ++i) {
      const double term = grad(i, j) * x(i, j) * inverse(0, i);
      e.value += term;
      e.magnitude += std::fabs(term);
    }
    return e;
  }),
              16 + static_cast<double>(rows));
}

}  // namespace

CUDA_HOST_TEST(norm_of_every_size_and_layout) {
  // Part of a warp, a warp, several warps with a partial one, a whole block.
  for (const int64_t n : {1, 7, 8, 64, 250, 256, 257, 1000}) {
    for (const RowLayout layout : kRowLayouts) check_norm<float, float, float>(5, n, layout);
  }
  check_norm<float, float, float>(1, 8192, RowLayout::kDense);
  check_norm<float, float, float>(1, 8187, RowLayout::kUnaligned);
  check_norm<float, float, float>(0, 8, RowLayout::kDense);
}

CUDA_HOST_TEST(norm_of_every_mixture_of_dtypes) {
  for (const RowLayout layout : kRowLayouts) {
    check_norm<float, __nv_bfloat16, __nv_bfloat16>(9, 40, layout);
    check_norm<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16>(9, 300, layout);
    check_norm<__nv_bfloat16, float, float>(9, 77, layout);
    check_norm<__half, __half, __half>(9, 40, layout);
    check_norm<float, __half, __half>(9, 33, layout);
  }
}

CUDA_HOST_TEST(gradients_of_every_size_and_layout) {
  for (const int64_t n : {1, 7, 8, 64, 257, 1000}) {
    for (const RowLayout layout : kRowLayouts) {
      check_backward<float, float, __nv_bfloat16, float>(11, n, 4, true, layout);
    }
  }
  for (const int64_t rows_a_block : {1, 3, 40}) {
    check_backward<float, float, __half, float>(37, 20, rows_a_block, false, RowLayout::kDense);
  }
  check_backward<float, float, __half, float>(2, 8192, 2, true, RowLayout::kDense);
  check_backward<float, float, float, float>(0, 40, 4, true, RowLayout::kDense);  // grad_weight is 0
}

CUDA_HOST_TEST(gradients_of_every_mixture_of_dtypes) {
  for (const RowLayout layout : kRowLayouts) {
    check_backward<float, __nv_bfloat16, __nv_bfloat16, float>(9, 40, 4, true, layout);
    check_backward<__nv_bfloat16, __nv_bfloat16, float, __nv_bfloat16>(9, 300, 4, true, layout);
    check_backward<__half, __half, float, __half>(9, 33, 4, false, layout);
  }
}

CUDA_HOST_TEST_ONCE(rows_that_no_block_can_hold_are_refused) {
  NormArguments a{};
  a.rows = 1;
  a.n = kLongestNormRow + 1;
  CHECK(launch_norm(a, nullptr) == cudaErrorInvalidValue, "norm");
  NormBackwardArguments b{};
  b.rows = 1;
  b.n = kLongestNormRow + 1;
  CHECK(launch_norm_backward(b, nullptr) == cudaErrorInvalidValue, "backward");
}

}  // namespace satformer::ops::cuda
