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
C10_ALWAYS_INLINE void store(acc_t* data, const at::vec::Vectorized<acc_t>& x, std::int64_t n) {
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

// n numbers of each half of a row.
template <typename acc_t>
struct Halves {
  VecOf<acc_t> first, second;
};
template <typename acc_t>
C10_ALWAYS_INLINE Halves<acc_t> load_halves(const acc_t* row, std::int64_t half, std::int64_t i, std::int64_t n) {
  return {load(row + i, n), load(row + half + i, n)};
}
template <typename acc_t>
C10_ALWAYS_INLINE void store_halves(acc_t* row, const Halves<acc_t>& x, std::int64_t half, std::int64_t i,
                                    std::int64_t n) {
  store(row + i, x.first, n);
  store(row + half + i, x.second, n);
}

// One token's rotation.
template <typename acc_t>
struct Rotation {
  const acc_t *cos, *sin;
  std::int64_t half;  // hd / 2

  C10_ALWAYS_INLINE Halves<acc_t> forth(const Halves<acc_t>& x, std::int64_t i, std::int64_t n) const {
    const VecOf<acc_t> c = load(cos + i, n), s = load(sin + i, n);
    return {x.first * c - x.second * s, at::vec::fmadd(x.first, s, x.second * c)};
  }
  C10_ALWAYS_INLINE Halves<acc_t> back(const Halves<acc_t>& y, std::int64_t i, std::int64_t n) const {
    const VecOf<acc_t> c = load(cos + i, n), s = load(sin + i, n);
    return {at::vec::fmadd(y.second, s, y.first * c), y.second * c - y.first * s};
  }
};

// y = RoPE(x). y may be x.
template <typename acc_t>
void rotate_row(acc_t* y, const acc_t* x, const Rotation<acc_t>& rotation) {
  const std::int64_t half = rotation.half;
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    store_halves(y, rotation.forth(load_halves(x, half, i, n), i, n), half, i, n);
  });
}

// dx = RoPE^-1(g). dx may be g.
template <typename acc_t>
void rotate_back_row(acc_t* dx, const acc_t* g, const Rotation<acc_t>& rotation) {
  const std::int64_t half = rotation.half;
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    store_halves(dx, rotation.back(load_halves(g, half, i, n), i, n), half, i, n);
  });
}

template <typename acc_t>
acc_t inverse_rms(const Halves<acc_t>& squares, acc_t eps, std::int64_t hd) {
  return acc_t(1) / std::sqrt(sum_of<acc_t>(squares.first + squares.second) / static_cast<acc_t>(hd) + eps);
}

// sums += x * y, half by half.
template <typename acc_t>
C10_ALWAYS_INLINE void add_products(Halves<acc_t>& sums, const Halves<acc_t>& x, const Halves<acc_t>& y) {
  sums.first = at::vec::fmadd(x.first, y.first, sums.first);
  sums.second = at::vec::fmadd(x.second, y.second, sums.second);
}

// y = RoPE(x weight / sqrt(mean(x^2) + eps)). y may be x.
template <typename acc_t>
void norm_rotate_row(acc_t* y, const acc_t* x, const acc_t* weight, acc_t eps, const Rotation<acc_t>& rotation) {
  using Vec = VecOf<acc_t>;
  const std::int64_t half = rotation.half;
  Halves<acc_t> squares{Vec(0), Vec(0)};
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    const Halves<acc_t> a = load_halves(x, half, i, n);
    add_products(squares, a, a);
  });
  const Vec r(inverse_rms(squares, eps, 2 * half));
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    const Halves<acc_t> a = load_halves(x, half, i, n), w = load_halves(weight, half, i, n);
    store_halves(y, rotation.forth({a.first * r * w.first, a.second * r * w.second}, i, n), half, i, n);
  });
}

// The gradients of norm_rotate_row's x and weight. With g the gradient of y, rotated back, r = 1 / sqrt(mean(x^2) +
// eps) and n = x r:
//   dx = r (g weight - n mean(g n weight)),   dweight += g n
// dx may be x. rotated: hd numbers of scratch, may be dy.
template <typename acc_t>
void norm_rotate_backward_row(acc_t* dx, acc_t* dweight, const acc_t* dy, const acc_t* x, const acc_t* weight,
                              acc_t eps, const Rotation<acc_t>& rotation, acc_t* rotated) {
  using Vec = VecOf<acc_t>;
  const std::int64_t half = rotation.half, hd = 2 * half;
  Halves<acc_t> squares{Vec(0), Vec(0)}, products{Vec(0), Vec(0)};
  each_vector<acc_t>(half, [&](std::int64_t i, std::int64_t n) {
    const Halves<acc_t> g = rotation.back(load_halves(dy, half, i, n), i, n);
    const Halves<acc_t> a = load_halves(x, half, i, n), w = load_halves(weight, half, i, n);
    store_halves(rotated, g, half, i, n);
    add_products(squares, a, a);
    add_products(products, a, {g.first * w.first, g.second * w.second});
  });
  const acc_t inverse = inverse_rms(squares, eps, hd);
  const Vec r(inverse), mean(sum_of<acc_t>(products.first + products.second) * inverse / static_cast<acc_t>(hd));
  each_vector<acc_t>(hd, [&](std::int64_t i, std::int64_t n) {
    const Vec g = load(rotated + i, n), normalized = load(x + i, n) * r;
    store(dweight + i, at::vec::fmadd(g, normalized, load(dweight + i, n)), n);
    store<acc_t>(dx + i, r * (g * load(weight + i, n) - normalized * mean), n);
  });
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
