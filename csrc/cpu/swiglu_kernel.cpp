// CPU kernels of swiglu, compiled once for each CPU capability: one pass, in pieces that stay in the first-level cache
// where the dtype needs conversion.
#include "csrc/cpu/swiglu_kernel.h"

#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/row.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT(google-build-using-namespace): the kernels' own names

constexpr int64_t kPiece = 512;

// 1 / (1 + exp(-a)), to 2^-20 of its value in float32: exp_u20 is off by less than that, and takes a third of exp's
// time. Where exp(-a) overflows, 0 or the smallest subnormals.
template <typename acc_t>
C10_ALWAYS_INLINE vec::Vectorized<acc_t> sigmoid(vec::Vectorized<acc_t> a) {
  using Vec = vec::Vectorized<acc_t>;
  return Vec(1) / (Vec(1) + a.neg().exp_u20());
}

template <typename acc_t>
void forward_piece(acc_t* y, const acc_t* gate, const acc_t* up, int64_t n) {
  for_each_vector<acc_t>(n, [=](int64_t j, int64_t count, int) __attribute__((always_inline)) {
    const auto a = load(gate + j, count);
    (a * sigmoid(a) * load(up + j, count)).store(y + j, count);
  });
}

// y null where it is not wanted.
template <typename acc_t>
void backward_piece(acc_t* grad_gate, acc_t* grad_up, acc_t* y, const acc_t* grad, const acc_t* gate, const acc_t* up,
                    int64_t n) {
  using Vec = vec::Vectorized<acc_t>;
  for_each_vector<acc_t>(n, [=](int64_t j, int64_t count, int) __attribute__((always_inline)) {
    const Vec a = load(gate + j, count), b = load(up + j, count), g = load(grad + j, count), s = sigmoid(a);
    const Vec silu = a * s;
    // s (1 + a (1 - s)) = s + silu (1 - s)
    (g * b * vec::fmadd(silu, Vec(1) - s, s)).store(grad_gate + j, count);
    (g * silu).store(grad_up + j, count);
    if (y) (silu * b).store(y + j, count);
  });
}

template <typename acc_t>
void forward(const Tensor& y_tensor, const Tensor& packed_tensor) {
  const int64_t f = y_tensor.size(1);
  const auto packed = reading<acc_t>(packed_tensor);
  const auto y = writing<acc_t>(y_tensor);
  at::parallel_for(0, y_tensor.size(0), rows_a_task(f), [&](int64_t first, int64_t last) {
    acc_t buffers[3][kPiece];
    for (int64_t i = first; i < last; ++i) {
      for (int64_t j = 0; j < f; j += kPiece) {
        const int64_t n = std::min(kPiece, f - j);
        acc_t* out = y.target(i, buffers[0], j);
        forward_piece(out, packed.read(i, buffers[1], n, j), packed.read(i, buffers[2], n, f + j), n);
        y.write(i, out, n, j);
      }
    }
  });
}

template <typename acc_t>
void backward(const Tensor& grad_packed_tensor, const Tensor& y_tensor, const Tensor& grad_tensor,
              const Tensor& packed_tensor) {
  const int64_t f = grad_tensor.size(1);
  const auto packed = reading<acc_t>(packed_tensor), grad = reading<acc_t>(grad_tensor);
  const auto grad_packed = writing<acc_t>(grad_packed_tensor), y = writing<acc_t>(y_tensor);
  at::parallel_for(0, grad_tensor.size(0), rows_a_task(f), [&](int64_t first, int64_t last) {
    acc_t buffers[6][kPiece];
    for (int64_t i = first; i < last; ++i) {
      for (int64_t j = 0; j < f; j += kPiece) {
        const int64_t n = std::min(kPiece, f - j);
        acc_t *gate = grad_packed.target(i, buffers[0], j), *up = grad_packed.target(i, buffers[1], f + j);
        acc_t* out = y.defined() ? y.target(i, buffers[2], j) : nullptr;
        backward_piece(gate, up, out, grad.read(i, buffers[3], n, j), packed.read(i, buffers[4], n, j),
                       packed.read(i, buffers[5], n, f + j), n);
        grad_packed.write(i, gate, n, j);
        grad_packed.write(i, up, n, f + j);
        if (out) y.write(i, out, n, j);
      }
    }
  });
}

void forward_kernel(const Tensor& y, const Tensor& packed) {
  packed.scalar_type() == kDouble ? forward<double>(y, packed) : forward<float>(y, packed);
}

void backward_kernel(const Tensor& grad_packed, const Tensor& y, const Tensor& grad, const Tensor& packed) {
  packed.scalar_type() == kDouble ? backward<double>(grad_packed, y, grad, packed)
                                  : backward<float>(grad_packed, y, grad, packed);
}

}  // namespace

SATFORMER_REGISTER_DISPATCH(satformer_swiglu_stub, &forward_kernel)
SATFORMER_REGISTER_DISPATCH(satformer_swiglu_backward_stub, &backward_kernel)
}  // namespace at::native
