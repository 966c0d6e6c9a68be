#pragma once
// Products of a few rows held in cache: linear combinations and dot products, the two steps of the operators that mix a
// token's representations. A row is n numbers of acc_t (float or double). Compiled with the CPU kernels, once for each
// capability: everything here lives in the capability's own namespace, so that the linker cannot merge code for
// different machines.
#include <ATen/Parallel.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/macros/Macros.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "csrc/cpu/scratch.h"

namespace satformer::ops::inline CPU_CAPABILITY {

// A task of fewer numbers costs more to hand out than to do.
constexpr std::int64_t kValuesATask = 32768;

inline std::int64_t tokens_a_task(std::int64_t values_a_token) {
  return std::max<std::int64_t>(1, kValuesATask / std::max<std::int64_t>(values_a_token, 1));
}

// Tokens that one task sums into one partial result: a function of the sizes alone, so that no bit depends on the
// number of threads. At most 64 partial results exist.
struct TokenBlocks {
  explicit TokenBlocks(std::int64_t all_tokens)
      : tokens(all_tokens), size(std::max<std::int64_t>(32, (all_tokens + 63) / 64)) {}
  std::int64_t count() const { return (tokens + size - 1) / size; }
  std::int64_t begin(std::int64_t block) const { return block * size; }
  std::int64_t end(std::int64_t block) const { return std::min(tokens, (block + 1) * size); }
  std::int64_t tokens, size;
};

// The numbers of x as acc_t: x itself, or in `space` after a conversion.
template <typename acc_t, typename scalar_t>
const acc_t* widened(const scalar_t* x, acc_t* space, std::int64_t n) {
  if constexpr (std::is_same_v<acc_t, scalar_t>) {
    return x;
  } else {
    using Narrow = at::vec::Vectorized<scalar_t>;
    constexpr std::int64_t kHalf = at::vec::Vectorized<float>::size();
    for (std::int64_t i = 0; i < n; i += Narrow::size()) {
      const std::int64_t count = std::min<std::int64_t>(Narrow::size(), n - i);
      const auto [low, high] = at::vec::convert_to_float<scalar_t>(Narrow::loadu(x + i, count));
      low.store(space + i, static_cast<int>(std::min(count, kHalf)));
      if (count > kHalf) high.store(space + i + kHalf, static_cast<int>(count - kHalf));
    }
    return space;
  }
}

// Rounds a row to the dtype of `out`, unless it was computed there.
template <typename acc_t, typename scalar_t>
void store_row(scalar_t* out, const acc_t* x, std::int64_t n) {
  if constexpr (std::is_same_v<acc_t, scalar_t>) {
    if (out != x) std::copy_n(x, n, out);
  } else {
    at::vec::convert(x, out, n);
  }
}

namespace detail {

// `count` numbers at p; a compile-time full vector where count is Vec::size().
template <typename Vec, bool kFull, typename acc_t>
Vec load(const acc_t* p, std::int64_t count) {
  if constexpr (kFull) {
    return Vec::loadu(p);
  } else {
    return Vec::loadu(p, count);
  }
}
template <typename Vec, bool kFull, typename acc_t>
void store(const Vec& x, acc_t* p, std::int64_t count) {
  if constexpr (kFull) {
    x.store(p);
  } else {
    x.store(p, static_cast<int>(count));
  }
}

// W rows at column i, V vectors wide: out_w = [out_w +] sum_j c[w * ld + j] x_j.
template <int W, int V, bool kFull, typename acc_t>
void combine_at(std::int64_t i, std::int64_t count, acc_t* const* out, const acc_t* const* x, const acc_t* c,
                std::int64_t ld, std::int64_t terms, bool add) {
  using Vec = at::vec::Vectorized<acc_t>;
  Vec sum[W][V];
#pragma GCC unroll 8
  for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      sum[w][v] = add ? load<Vec, kFull>(out[w] + i + v * Vec::size(), count) : Vec(acc_t(0));
    }
  }
  for (std::int64_t j = 0; j < terms; ++j) {
    Vec value[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) value[v] = load<Vec, kFull>(x[j] + i + v * Vec::size(), count);
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
      const Vec factor(c[w * ld + j]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[w][v] = at::vec::fmadd(factor, value[v], sum[w][v]);
    }
  }
#pragma GCC unroll 8
  for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store<Vec, kFull>(sum[w][v], out[w] + i + v * Vec::size(), count);
  }
}

template <int W, typename acc_t>
void combine_rows(acc_t* const* out, const acc_t* const* x, const acc_t* c, std::int64_t ld, std::int64_t terms,
                  std::int64_t n, bool add) {
  using Vec = at::vec::Vectorized<acc_t>;
  constexpr int kVectors = W <= 2 ? 4 : 2;  // sums, values and a factor fit 16 registers
  constexpr std::int64_t kStep = kVectors * Vec::size();
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) combine_at<W, kVectors, true>(i, Vec::size(), out, x, c, ld, terms, add);
  for (; i + Vec::size() <= n; i += Vec::size()) combine_at<W, 1, true>(i, Vec::size(), out, x, c, ld, terms, add);
  if (i < n) combine_at<W, 1, false>(i, n - i, out, x, c, ld, terms, add);
}

// result[r * ld + w] = <x_r, y_w> for R rows x and W rows y.
template <int R, int W, typename acc_t>
void dot_rows(acc_t* result, std::int64_t ld, const acc_t* const* x, const acc_t* const* y, std::int64_t n) {
  using Vec = at::vec::Vectorized<acc_t>;
  constexpr int kVectors = R * W <= 3 ? 2 : 1;  // more independent sums hide the latency of the addition
  constexpr std::int64_t kStep = kVectors * Vec::size();
  Vec sum[R][W][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][w][v] = Vec(acc_t(0));
    }
  }
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vec value[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) value[r] = Vec::loadu(x[r] + i + v * Vec::size());
#pragma GCC unroll 8
      for (int w = 0; w < W; ++w) {
        const Vec other = Vec::loadu(y[w] + i + v * Vec::size());
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sum[r][w][v] = at::vec::fmadd(value[r], other, sum[r][w][v]);
      }
    }
  }
  for (; i < n; i += Vec::size()) {  // Vec::loadu of fewer numbers fills up with zeros
    const std::int64_t count = std::min<std::int64_t>(Vec::size(), n - i);
    for (int r = 0; r < R; ++r) {
      const Vec value = Vec::loadu(x[r] + i, count);
      for (int w = 0; w < W; ++w) sum[r][w][0] = at::vec::fmadd(value, Vec::loadu(y[w] + i, count), sum[r][w][0]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
      Vec total = sum[r][w][0];
#pragma GCC unroll 8
      for (int v = 1; v < kVectors; ++v) total = total + sum[r][w][v];
      result[r * ld + w] = at::vec::vec_reduce_all<acc_t>([](const Vec& a, const Vec& b) { return a + b; }, total);
    }
  }
}

// Calls f with std::integral_constant<int, count>, count from 1 to 6.
template <typename Function>
void with_count(std::int64_t count, const Function& f) {
  switch (count) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 3:
      return f(std::integral_constant<int, 3>{});
    case 4:
      return f(std::integral_constant<int, 4>{});
    case 5:
      return f(std::integral_constant<int, 5>{});
    default:
      return f(std::integral_constant<int, 6>{});
  }
}

// The next group of at most 6 out of `left`, such that the last two are even: 7 = 4 + 3.
inline std::int64_t next_group(std::int64_t left) { return left <= 6 ? left : left <= 12 ? (left + 1) / 2 : 6; }

}  // namespace detail

// Not inlined: GCC would warn of the branches for more rows than a caller has.
// out_w = [out_w +] sum over j < terms of c[w * ld + j] x_j, for w < rows. No out_w may be an x_j.
template <typename acc_t>
C10_NOINLINE void combine(std::int64_t rows, acc_t* const* out, const acc_t* const* x, const acc_t* c, std::int64_t ld,
                          std::int64_t terms, std::int64_t n, bool add) {
  for (std::int64_t w = 0, group = 0; w < rows; w += group) {
    group = detail::next_group(rows - w);
    detail::with_count(group, [&](auto count) {
      detail::combine_rows<decltype(count)::value>(out + w, x, c + w * ld, ld, terms, n, add);
    });
  }
}

// result[r * ld + w] = <x_r, y_w>, for r < x_rows and w < y_rows.
template <typename acc_t>
C10_NOINLINE void dots(acc_t* result, std::int64_t ld, std::int64_t x_rows, const acc_t* const* x, std::int64_t y_rows,
                       const acc_t* const* y, std::int64_t n) {
  for (std::int64_t w = 0, group = 0; w < y_rows; w += group) {
    group = detail::next_group(y_rows - w);
    detail::with_count(group, [&](auto count) {
      constexpr int kW = decltype(count)::value;
      std::int64_t r = 0;
      for (; r + 2 <= x_rows; r += 2) detail::dot_rows<2, kW>(result + r * ld + w, ld, x + r, y + w, n);
      if (r < x_rows) detail::dot_rows<1, kW>(result + r * ld + w, ld, x + r, y + w, n);
    });
  }
}

template <typename acc_t>
acc_t dot(const acc_t* x, const acc_t* y, std::int64_t n) {
  acc_t result;
  detail::dot_rows<1, 1>(&result, 1, &x, &y, n);
  return result;
}

// out = the sum of `count` rows of n numbers, `stride` apart, in their order whatever the number of threads.
template <typename acc_t>
void sum_partials(acc_t* out, const acc_t* partials, std::int64_t count, std::int64_t stride, std::int64_t n) {
  at::parallel_for(0, n, 8192, [&](std::int64_t begin, std::int64_t end) {
    std::fill(out + begin, out + end, acc_t(0));
    for (std::int64_t k = 0; k < count; ++k) {
      const acc_t* partial = partials + k * stride;
      for (std::int64_t i = begin; i < end; ++i) out[i] += partial[i];
    }
  });
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
