#pragma once
// A head's row of hd numbers in the arithmetic dtype (float or double): RMSNorm and rotary positions, forward and
// backward. Compiled once for each capability (csrc/cpu/gate_row.h says why everything here lives in the capability's
// own namespace). A row is worked on as its two halves, which the rotation pairs.
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace satformer::ops::inline CPU_CAPABILITY {

template <typename acc_t>
using VecOf = at::vec::Vectorized<acc_t>;

// f(i, n) for each n numbers from i on: whole vectors, then the rest.
template <typename acc_t, typename Function>
C10_ALWAYS_INLINE void each_vector(std::int64_t size, const Function& f) {
  constexpr std::int64_t kSize = VecOf<acc_t>::size();
  std::int64_t i = 0;
  for (; i + kSize <= size; i += kSize) f(i, kSize);
  if (i < size) f(i, size - i);
}

// n numbers, the others 0.
template <typename acc_t>
C10_ALWAYS_INLINE VecOf<acc_t> load(const acc_t* data, std::int64_t n) {
  return n == VecOf<acc_t>::size() ? VecOf<acc_t>::loadu(data) : VecOf<acc_t>::loadu(data, n);
}
template <typename acc_t>
C10_ALWAYS_INLINE void store(acc_t* data, const VecOf<acc_t>& x, std::int64_t n) {
  n == VecOf<acc_t>::size() ? x.store(data) : x.store(data, static_cast<int>(n));
}
template <typename acc_t>
C10_ALWAYS_INLINE acc_t sum_of(const VecOf<acc_t>& x) {
  return at::vec::vec_reduce_all<acc_t>([](VecOf<acc_t> a, VecOf<acc_t> b) { return a + b; }, x);
}

// The row in the arithmetic dtype: itself, or widened into scratch.
template <typename acc_t, typename scalar_t>
const acc_t* widened(const scalar_t* row, [[maybe_unused]] acc_t* scratch, [[maybe_unused]] std::int64_t size) {
  if constexpr (std::is_same_v<scalar_t, acc_t>) {
    return row;
  } else {
    constexpr std::int64_t kHalf = VecOf<acc_t>::size();
    each_vector<scalar_t>(size, [&](std::int64_t i, std::int64_t n) {
      const auto [first, second] = at::vec::convert_to_float<scalar_t>(load(row + i, n));
      store(scratch + i, first, n < kHalf ? n : kHalf);
      if (n > kHalf) store(scratch + i + kHalf, second, n - kHalf);
    });
    return scratch;
  }
}

// Where a result in the arithmetic dtype is put together: the row itself, or scratch that finish() rounds into the row.
template <typename acc_t, typename scalar_t>
acc_t* unfinished(scalar_t* row, acc_t* scratch) {
  if constexpr (std::is_same_v<scalar_t, acc_t>) {
    return row;
  } else {
    return scratch;
  }
}
template <typename acc_t, typename scalar_t>
void finish([[maybe_unused]] scalar_t* row, [[maybe_unused]] const acc_t* result, [[maybe_unused]] std::int64_t size) {
  if constexpr (!std::is_same_v<scalar_t, acc_t>) {
    constexpr std::int64_t kHalf = VecOf<acc_t>::size();
    each_vector<scalar_t>(size, [&](std::int64_t i, std::int64_t n) {
      const VecOf<acc_t> first = load(result + i, n < kHalf ? n : kHalf);
      const VecOf<acc_t> second = n > kHalf ? load(result + i + kHalf, n - kHalf) : VecOf<acc_t>(0);
      store(row + i, at::vec::convert_from_float<scalar_t>(first, second), n);
    });
  }
}

// One token's rotation.
template <typename acc_t>
struct Rotation {
  const acc_t *cos, *sin;
  std::int64_t half;  // hd / 2
};

// 1 / sqrt(mean(x^2) + eps)
template <typename acc_t>
acc_t inverse_rms(const acc_t* x, acc_t eps, std::int64_t half) {
  VecOf<acc_t> sum1(0), sum2(0);
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    const VecOf<acc_t> x1 = load(x + i, n), x2 = load(x + half + i, n);
    sum1 = at::vec::fmadd(x1, x1, sum1);
    sum2 = at::vec::fmadd(x2, x2, sum2);
  });
  return acc_t(1) / std::sqrt(sum_of<acc_t>(sum1 + sum2) / static_cast<acc_t>(2 * half) + eps);
}

// y = RoPE(x * inverse * weight), or RoPE(x) without a weight. y may be x.
template <bool kNorm, typename acc_t>
void rotate_row(acc_t* y, const acc_t* x, acc_t inverse, const acc_t* weight, const Rotation<acc_t>& rotation) {
  using Vec = VecOf<acc_t>;
  const std::int64_t half = rotation.half;
  const Vec r(inverse);
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    Vec x1 = load(x + i, n), x2 = load(x + half + i, n);
    if constexpr (kNorm) {
      x1 = x1 * r * load(weight + i, n);
      x2 = x2 * r * load(weight + half + i, n);
    }
    const Vec cos = load(rotation.cos + i, n), sin = load(rotation.sin + i, n);
    store<acc_t>(y + i, x1 * cos - x2 * sin, n);
    store<acc_t>(y + half + i, at::vec::fmadd(x1, sin, x2 * cos), n);
  });
}

// y = RoPE^-1(g). y may be g.
template <typename acc_t>
void rotate_back_row(acc_t* y, const acc_t* g, const Rotation<acc_t>& rotation) {
  using Vec = VecOf<acc_t>;
  const std::int64_t half = rotation.half;
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    const Vec g1 = load(g + i, n), g2 = load(g + half + i, n);
    const Vec cos = load(rotation.cos + i, n), sin = load(rotation.sin + i, n);
    store<acc_t>(y + i, at::vec::fmadd(g2, sin, g1 * cos), n);
    store<acc_t>(y + half + i, g2 * cos - g1 * sin, n);
  });
}

// The gradient of RMSNorm(x) * weight, with r = 1 / sqrt(mean(x^2) + eps) and n = x r:
//   dx = r (g weight - n mean(g n weight)),   dweight += g n
// dx may be x.
template <typename acc_t>
void norm_backward_row(acc_t* dx, acc_t* dweight, const acc_t* g, const acc_t* x, const acc_t* weight, acc_t eps,
                       std::int64_t half) {
  using Vec = VecOf<acc_t>;
  const std::int64_t hd = 2 * half;
  Vec squares1(0), squares2(0), products1(0), products2(0);
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    const Vec x1 = load(x + i, n), x2 = load(x + half + i, n);
    squares1 = at::vec::fmadd(x1, x1, squares1);
    squares2 = at::vec::fmadd(x2, x2, squares2);
    products1 = at::vec::fmadd(x1, load(g + i, n) * load(weight + i, n), products1);
    products2 = at::vec::fmadd(x2, load(g + half + i, n) * load(weight + half + i, n), products2);
  });
  const acc_t inverse = acc_t(1) / std::sqrt(sum_of<acc_t>(squares1 + squares2) / static_cast<acc_t>(hd) + eps);
  const acc_t mean = sum_of<acc_t>(products1 + products2) * inverse / static_cast<acc_t>(hd);
  const Vec r(inverse), m(mean);
  each_vector<acc_t>(hd, [&](std::int64_t i, std::int64_t n) {
    const Vec gradient = load(g + i, n), normalized = load(x + i, n) * r;
    store<acc_t>(dweight + i, at::vec::fmadd(gradient, normalized, load(dweight + i, n)), n);
    store<acc_t>(dx + i, r * (gradient * load(weight + i, n) - normalized * m), n);
  });
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
