#pragma once
// Rows of hd values of a [B, T, heads, hd] tensor, as the CPU kernels read, mix and write them. Compiled once for each
// capability (csrc/cpu/gate_row.h says why everything here lives in the capability's own namespace).
#include <ATen/core/Tensor.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <cstdint>
#include <cstring>

#include "csrc/cpu/gate_row.h"

namespace satformer::ops::inline CPU_CAPABILITY {

// Values of shape [B, T, heads, hd], contiguous in hd.
template <typename pointer_t>
struct Values {
  pointer_t data;
  std::int64_t stride_b, stride_t, stride_h;
  pointer_t row(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return data + b * stride_b + t * stride_t + h * stride_h;
  }
};

template <typename scalar_t>
Values<const scalar_t*> reading(const at::Tensor& x) {
  return {x.const_data_ptr<scalar_t>(), x.stride(0), x.stride(1), x.stride(2)};
}

template <typename scalar_t>
Values<scalar_t*> writing(const at::Tensor& x) {
  return {x.mutable_data_ptr<scalar_t>(), x.stride(0), x.stride(1), x.stride(2)};
}

inline RowSource row_source(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.const_data_ptr(), x.scalar_type(), x.stride(0), x.stride(1), x.stride(2)};
}

// out = v + alpha * first
template <typename scalar_t, typename acc_t>
void mix_row(scalar_t* out, const scalar_t* v, const scalar_t* first, acc_t alpha, std::int64_t n) {
  if (alpha == acc_t(0)) {
    if (out != v) std::memcpy(out, v, n * sizeof(scalar_t));
    return;
  }
  using Vec = at::vec::Vectorized<acc_t>;
  at::vec::map2<scalar_t>([a = Vec(alpha)](Vec x, Vec y) { return at::vec::fmadd(a, y, x); }, out, v, first, n);
}

// out = alpha * grad
template <typename scalar_t, typename acc_t>
void scale_row(scalar_t* out, const scalar_t* grad, acc_t alpha, std::int64_t n) {
  if (alpha == acc_t(0)) {
    std::memset(static_cast<void*>(out), 0, n * sizeof(scalar_t));
    return;
  }
  using Vec = at::vec::Vectorized<acc_t>;
  at::vec::map<scalar_t>([a = Vec(alpha)](Vec x) { return a * x; }, out, grad, n);
}

// out = lambda1 * first + lambda2 * v
template <typename scalar_t, typename acc_t>
void combine_row(scalar_t* out, const scalar_t* v, const scalar_t* first, acc_t lambda1, acc_t lambda2,
                 std::int64_t n) {
  if (lambda1 == acc_t(0)) return scale_row(out, v, lambda2, n);
  using Vec = at::vec::Vectorized<acc_t>;
  at::vec::map2<scalar_t>([a = Vec(lambda1), b = Vec(lambda2)](Vec x, Vec y) { return at::vec::fmadd(a, y, b * x); },
                          out, v, first, n);
}

// sum += alpha * grad
template <typename scalar_t, typename acc_t>
void add_scaled_row(scalar_t* sum, const scalar_t* grad, acc_t alpha, std::int64_t n) {
  if (alpha == acc_t(0)) return;
  using Vec = at::vec::Vectorized<acc_t>;
  at::vec::map2<scalar_t>([a = Vec(alpha)](Vec x, Vec y) { return at::vec::fmadd(a, y, x); }, sum, sum, grad, n);
}

template <typename acc_t, typename scalar_t>
acc_t dot_row(const scalar_t* a, const scalar_t* b, std::int64_t n) {
  if (n == 0) return acc_t(0);
  using Vec = at::vec::Vectorized<acc_t>;
  return at::vec::map2_reduce_all<scalar_t>([](Vec x, Vec y) { return x * y; }, [](Vec x, Vec y) { return x + y; }, a,
                                            b, n);
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
