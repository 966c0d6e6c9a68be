#pragma once
// What the forward and the backward kernel of causal attention share: a block of queries meets a block of keys, and
// their scores stay in cache from the first product to the last. Keys after the queries are left out tile by tile.
// Compiled once for each capability (csrc/cpu/gate_row.h says why everything here lives in the capability's own
// namespace).
#include <ATen/core/Tensor.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "csrc/cpu/causal_attention_kernel.h"
#include "csrc/cpu/tile_products.h"
#include "csrc/cpu/value_row.h"

namespace satformer::ops::inline CPU_CAPABILITY {

constexpr std::int64_t kQueries = 48, kKeys = 64;  // a block's; whole tiles

template <typename acc_t>
using Vec = at::vec::Vectorized<acc_t>;

inline std::int64_t whole(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

template <typename acc_t>
acc_t sum_of_lanes(const Vec<acc_t>& x) {
  return at::vec::vec_reduce_all<acc_t>([](Vec<acc_t> a, Vec<acc_t> b) { return a + b; }, x);
}

// Sizes of one call. A head's row is padded with zeros to whole tiles.
template <typename acc_t>
struct Shape {
  explicit Shape(const CausalAttentionTensors& tensors)
      : B(tensors.q.size(0)),
        T(tensors.q.size(1)),
        H(tensors.q.size(2)),
        group(H / tensors.k.size(2)),
        hd(tensors.q.size(3)),
        padded_hd(whole(hd, kTileColumns<acc_t>)),
        padded_T(whole(T, kTileColumns<acc_t>)),
        scale(acc_t(1) / std::sqrt(static_cast<acc_t>(hd))) {}
  std::int64_t B, T, H, group, hd, padded_hd, padded_T;
  acc_t scale;
};

// Rows [begin, begin + n) of a head, one after the other: to [n, padded_hd].
template <typename acc_t>
void copy_rows(acc_t* to, const Values<const acc_t*>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
               std::int64_t n, const Shape<acc_t>& shape, acc_t factor) {
  for (std::int64_t i = 0; i < n; ++i, to += shape.padded_hd) {
    const acc_t* row = x.row(b, begin + i, h);
    for (std::int64_t d = 0; d < shape.hd; ++d) to[d] = factor * row[d];
    std::fill(to + shape.hd, to + shape.padded_hd, acc_t(0));
  }
}

// A head's rows transposed, a panel for each kTileColumns rows: [padded_T / columns, hd, columns].
template <typename acc_t>
void copy_transposed(acc_t* to, const Values<const acc_t*>& x, std::int64_t b, std::int64_t h,
                     const Shape<acc_t>& shape) {
  constexpr std::int64_t kColumns = kTileColumns<acc_t>;
  for (std::int64_t first = 0; first < shape.T; first += kColumns, to += kColumns * shape.hd) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      const acc_t* row = first + j < shape.T ? x.row(b, first + j, h) : nullptr;
      for (std::int64_t d = 0; d < shape.hd; ++d) to[d * kColumns + j] = row ? row[d] : acc_t(0);
    }
  }
}

// Where a block of queries and a block of keys meet.
struct TilePair {
  std::int64_t first_query, queries, first_key, keys;

  // Keys of the block that query r of the block sees: its first ones.
  std::int64_t seen(std::int64_t r) const { return std::clamp<std::int64_t>(first_query + r - first_key + 1, 0, keys); }
  // The first query of the block that sees key j of it.
  std::int64_t first_seeing(std::int64_t j) const { return std::max<std::int64_t>(0, first_key + j - first_query); }
};

// f(pair) for each block of keys that the queries from first_query on see, in order.
template <typename Function>
void each_pair(std::int64_t first_query, std::int64_t T, const Function& f) {
  const std::int64_t queries = std::min(kQueries, T - first_query), end = first_query + queries;
  for (std::int64_t key = 0; key < end; key += kKeys)
    f(TilePair{first_query, queries, key, std::min(kKeys, end - key)});
}

// s[r, j] = x[r] . y[j] wherever query r sees key j, and in places beside those. x: [queries, padded_hd]; transposed:
// the panels of y's block. s: [kQueries, kKeys].
template <typename acc_t>
void multiply_rows(acc_t* s, const acc_t* x, const acc_t* transposed, const TilePair& pair, const Shape<acc_t>& shape) {
  constexpr std::int64_t kColumns = kTileColumns<acc_t>;
  for (std::int64_t j = 0; j < pair.keys; j += kColumns, transposed += kColumns * shape.hd) {
    for (std::int64_t r = pair.first_seeing(j) / kTileRows * kTileRows; r < pair.queries; r += kTileRows) {
      tile_of<false, acc_t>(pair.queries - r, s + r * kKeys + j, kKeys, {x + r * shape.padded_hd, shape.padded_hd, 1},
                            transposed, kColumns, shape.hd);
    }
  }
}

// out[r] (+)= sum over the keys j that query r sees of s[r, j] y[j]; s is 0 for those it does not see. The block's
// first pair writes, the others add.
template <typename acc_t>
void combine_keys(acc_t* out, const acc_t* s, const acc_t* y, const TilePair& pair, std::int64_t padded_hd) {
  for (std::int64_t d = 0; d < padded_hd; d += kTileColumns<acc_t>) {
    for (std::int64_t r = 0; r < pair.queries; r += kTileRows) {
      const std::int64_t rows = std::min(kTileRows, pair.queries - r), keys = pair.seen(r + rows - 1);
      const Factor<acc_t> weights{s + r * kKeys, kKeys, 1};
      acc_t* to = out + r * padded_hd + d;
      if (pair.first_key == 0) {
        tile_of<false>(rows, to, padded_hd, weights, y + d, padded_hd, keys);
      } else if (keys > 0) {
        tile_of<true>(rows, to, padded_hd, weights, y + d, padded_hd, keys);
      }
    }
  }
}

// out[j] += sum over the queries r that see key j of s[r, j] x[r].
template <typename acc_t>
void combine_queries(acc_t* out, const acc_t* s, const acc_t* x, const TilePair& pair, std::int64_t padded_hd) {
  for (std::int64_t d = 0; d < padded_hd; d += kTileColumns<acc_t>) {
    for (std::int64_t j = 0; j < pair.keys; j += kTileRows) {
      const std::int64_t r = pair.first_seeing(j);
      tile_of<true, acc_t>(pair.keys - j, out + j * padded_hd + d, padded_hd, {s + r * kKeys + j, 1, kKeys},
                           x + r * padded_hd + d, padded_hd, pair.queries - r);
    }
  }
}

// exp(s - shift) over a row's n scores and their sum, and 0 in the rest of the row. exp_u20: within 20 units in the
// last place, the exponential of LibTorch's own attention.
template <typename acc_t>
acc_t exponentials(acc_t* s, acc_t shift, std::int64_t n) {
  constexpr std::int64_t kSize = Vec<acc_t>::size();
  const std::int64_t end = whole(n, kSize);
  std::fill(s + n, s + end, -std::numeric_limits<acc_t>::infinity());
  Vec<acc_t> sum(acc_t(0));
  for (std::int64_t j = 0; j < end; j += kSize) {
    const Vec<acc_t> e = (Vec<acc_t>::loadu(s + j) - Vec<acc_t>(shift)).exp_u20();
    e.store(s + j);
    sum = sum + e;
  }
  std::fill(s + end, s + kKeys, acc_t(0));
  return sum_of_lanes<acc_t>(sum);
}

template <typename acc_t>
acc_t largest(const acc_t* s, std::int64_t n) {
  return at::vec::reduce_all<acc_t>([](Vec<acc_t> a, Vec<acc_t> b) { return at::vec::maximum(a, b); }, s, n);
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
