// swiglu's CUDA kernels and launchers against the formulas of csrc/ops/swiglu.h in float64.
#include "tests/cuda_host/testing.h"

#include "csrc/cuda/swiglu.cu"
#include "tests/cuda_host/row_matrix.h"

namespace satformer::ops::cuda {
namespace {

using cuda_host::Expected;

constexpr double kUlps = 16;  // exp and a few roundings

// Column `begin` on of the same rows.
template <typename pointer>
Matrix<pointer> columns(const Matrix<pointer>& x, int64_t begin) {
  using byte = std::conditional_t<std::is_same_v<pointer, void*>, char, const char>;
  return matrix<pointer>(static_cast<byte*>(x.data) + begin * bytes_of(x.dtype), x.dtype, x.stride);
}

template <typename T, typename G>
void check_swiglu(int64_t rows, int64_t f, RowLayout layout) {
  const std::string where = text_of(rows, "f", f, layout);
  const RowMatrix<T> packed("packed", rows, 2 * f, layout, 1);
  const RowMatrix<G> grad("grad", rows, f, layout, 2);
  RowMatrix<T> y("y", rows, f, layout), again("y", rows, f, layout), grad_packed("grad_packed", rows, 2 * f, layout),
      alone("grad_packed", rows, 2 * f, layout);
  const Input gate = packed.input(), up = columns(gate, f);
  CHECK(launch_swiglu({rows, f, gate, up, y.output()}, nullptr) == cudaSuccess, where);
  const auto sigmoid = [](double a) { return 1 / (1 + std::exp(-a)); };
  const auto y_of = [&](int64_t i, int64_t j) {
    const double a = packed(i, j), value = a * sigmoid(a) * packed(i, f + j);
    return Expected{value, std::fabs(value)};
  };
  CHECK_CLOSE(where + "y", y.data(), y.expect(y_of), kUlps);

  SwigluBackwardArguments b{
      rows, f, grad.input(), gate, up, grad_packed.output(), columns(grad_packed.output(), f), again.output()};
  CHECK(launch_swiglu_backward(b, nullptr) == cudaSuccess, where);
  const auto gradient_of = [&](int64_t i, int64_t j) {
    const int64_t k = j < f ? j : j - f;
    const double a = packed(i, k), b = packed(i, f + k), g = grad(i, k), s = sigmoid(a);
    if (j >= f) return Expected{g * a * s, std::fabs(g * a * s)};
    return Expected{g * b * s * (1 + a * (1 - s)), std::fabs(g * b) * s * (1 + std::fabs(a))};
  };
  CHECK_CLOSE(where + "grad_packed", grad_packed.data(), grad_packed.expect(gradient_of), kUlps);
  CHECK_CLOSE(where + "y again", again.data(), again.expect(y_of), kUlps);
  b.grad_gate = alone.output();
  b.grad_up = columns(alone.output(), f);
  b.y = {};
  CHECK(launch_swiglu_backward(b, nullptr) == cudaSuccess, where);
  CHECK_CLOSE(where + "grad_packed without y", alone.data(), alone.expect(gradient_of), kUlps);
}

}  // namespace

CUDA_HOST_TEST(swiglu_of_every_dtype_size_and_layout) {
  for (const RowLayout layout : kRowLayouts) {
    for (const int64_t f : {1, 4, 7, 8, 12, 64, 129}) {
      check_swiglu<float, float>(5, f, layout);
      check_swiglu<__nv_bfloat16, __nv_bfloat16>(5, f, layout);
    }
    check_swiglu<__half, __half>(3, 40, layout);
    check_swiglu<__nv_bfloat16, float>(3, 40, layout);
    check_swiglu<float, float>(2, 2050, layout);
  }
  check_swiglu<float, float>(0, 8, RowLayout::kDense);
}

}  // namespace satformer::ops::cuda
