// CPU kernels of causal attention, compiled once for each CPU capability (see cpu/gate_row.h on what may stand here).
//
// A block of queries meets a block of keys: their scores stay in cache from the first product to the last. Keys after
// the queries are left out tile by tile. A query's numbers depend on its row and the blocks' sizes alone, and a head's
// gradients are summed by one thread, so that the number of threads changes no bit.
#include "csrc/cpu/causal_attention_kernel.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "csrc/cpu/scratch.h"
#include "csrc/cpu/tile_products.h"
#include "csrc/cpu/value_row.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // rows and tiles; nothing of at::native but the registration is used here

constexpr int64_t kQueries = 48, kKeys = 64;  // a block's; whole tiles

template <typename acc_t>
using Vec = at::vec::Vectorized<acc_t>;

int64_t whole(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

template <typename acc_t>
acc_t sum_of(const Vec<acc_t>& x) {
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
  int64_t B, T, H, group, hd, padded_hd, padded_T;
  acc_t scale;
};

// Rows [begin, begin + n) of a head, one after the other: to [n, padded_hd].
template <typename acc_t>
void copy_rows(acc_t* to, const Values<const acc_t*>& x, int64_t b, int64_t h, int64_t begin, int64_t n,
               const Shape<acc_t>& shape, acc_t factor) {
  for (int64_t i = 0; i < n; ++i, to += shape.padded_hd) {
    const acc_t* row = x.row(b, begin + i, h);
    for (int64_t d = 0; d < shape.hd; ++d) to[d] = factor * row[d];
    std::fill(to + shape.hd, to + shape.padded_hd, acc_t(0));
  }
}

// A head's rows transposed, a panel for each kTileColumns rows: [padded_T / columns, hd, columns].
template <typename acc_t>
void copy_transposed(acc_t* to, const Values<const acc_t*>& x, int64_t b, int64_t h, const Shape<acc_t>& shape) {
  constexpr int64_t kColumns = kTileColumns<acc_t>;
  for (int64_t first = 0; first < shape.T; first += kColumns, to += kColumns * shape.hd) {
    for (int64_t j = 0; j < kColumns; ++j) {
      const acc_t* row = first + j < shape.T ? x.row(b, first + j, h) : nullptr;
      for (int64_t d = 0; d < shape.hd; ++d) to[d * kColumns + j] = row ? row[d] : acc_t(0);
    }
  }
}

// Where a block of queries and a block of keys meet.
struct TilePair {
  int64_t first_query, queries, first_key, keys;

  // Keys of the block that query r of the block sees: its first ones.
  int64_t seen(int64_t r) const { return std::clamp<int64_t>(first_query + r - first_key + 1, 0, keys); }
  // The first query of the block that sees key j of it.
  int64_t first_seeing(int64_t j) const { return std::max<int64_t>(0, first_key + j - first_query); }
};

// f(pair) for each block of keys that the queries from first_query on see, in order.
template <typename Function>
void each_pair(int64_t first_query, int64_t T, const Function& f) {
  const int64_t queries = std::min(kQueries, T - first_query), end = first_query + queries;
  for (int64_t key = 0; key < end; key += kKeys) f(TilePair{first_query, queries, key, std::min(kKeys, end - key)});
}

// s[r, j] = x[r] . y[j] wherever query r sees key j, and in places beside those. x: [queries, padded_hd]; transposed:
// the panels of y's block. s: [kQueries, kKeys].
template <typename acc_t>
void multiply_rows(acc_t* s, const acc_t* x, const acc_t* transposed, const TilePair& pair, const Shape<acc_t>& shape) {
  constexpr int64_t kColumns = kTileColumns<acc_t>;
  for (int64_t j = 0; j < pair.keys; j += kColumns, transposed += kColumns * shape.hd) {
    for (int64_t r = pair.first_seeing(j) / kTileRows * kTileRows; r < pair.queries; r += kTileRows) {
      tile_of<false, acc_t>(pair.queries - r, s + r * kKeys + j, kKeys, {x + r * shape.padded_hd, shape.padded_hd, 1},
                            transposed, kColumns, shape.hd);
    }
  }
}

// out[r] (+)= sum over the keys j that query r sees of s[r, j] y[j]; s is 0 for those it does not see. The block's
// first pair writes, the others add.
template <typename acc_t>
void combine_keys(acc_t* out, const acc_t* s, const acc_t* y, const TilePair& pair, int64_t padded_hd) {
  for (int64_t d = 0; d < padded_hd; d += kTileColumns<acc_t>) {
    for (int64_t r = 0; r < pair.queries; r += kTileRows) {
      const int64_t rows = std::min(kTileRows, pair.queries - r), keys = pair.seen(r + rows - 1);
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
void combine_queries(acc_t* out, const acc_t* s, const acc_t* x, const TilePair& pair, int64_t padded_hd) {
  for (int64_t d = 0; d < padded_hd; d += kTileColumns<acc_t>) {
    for (int64_t j = 0; j < pair.keys; j += kTileRows) {
      const int64_t r = pair.first_seeing(j);
      tile_of<true, acc_t>(pair.keys - j, out + j * padded_hd + d, padded_hd, {s + r * kKeys + j, 1, kKeys},
                           x + r * padded_hd + d, padded_hd, pair.queries - r);
    }
  }
}

// exp(s - shift) over a row's n scores and their sum, and 0 in the rest of the row. exp_u20: within 20 units in the
// last place, the exponential of LibTorch's own attention.
template <typename acc_t>
acc_t exponentials(acc_t* s, acc_t shift, int64_t n) {
  constexpr int64_t kSize = Vec<acc_t>::size();
  const int64_t end = whole(n, kSize);
  std::fill(s + n, s + end, -std::numeric_limits<acc_t>::infinity());
  Vec<acc_t> sum(acc_t(0));
  for (int64_t j = 0; j < end; j += kSize) {
    const Vec<acc_t> e = (Vec<acc_t>::loadu(s + j) - Vec<acc_t>(shift)).exp_u20();
    e.store(s + j);
    sum = sum + e;
  }
  std::fill(s + end, s + kKeys, acc_t(0));
  return sum_of<acc_t>(sum);
}

template <typename acc_t>
acc_t largest(const acc_t* s, int64_t n) {
  return at::vec::reduce_all<acc_t>([](Vec<acc_t> a, Vec<acc_t> b) { return at::vec::maximum(a, b); }, s, n);
}

// The softmax of a block of queries, kept up block of keys by block of keys.
template <typename acc_t>
class Softmax {
 public:
  Softmax() {
    std::fill(largest_, largest_ + kQueries, -std::numeric_limits<acc_t>::infinity());
    std::fill(sums_, sums_ + kQueries, acc_t(0));
  }

  // Scores become exponentials; what was combined before is brought to the new scale.
  void take(acc_t* s, acc_t* combined, const TilePair& pair, int64_t padded_hd) {
    for (int64_t r = 0; r < pair.queries; ++r, s += kKeys, combined += padded_hd) {
      const int64_t n = pair.seen(r);
      if (n == 0) {
        std::fill(s, s + kKeys, acc_t(0));
        continue;
      }
      const acc_t before = largest_[r], now = std::max(before, largest(s, n));
      largest_[r] = now;
      const acc_t sum = exponentials(s, now, n);
      const acc_t factor = std::exp(before - now);
      // exp_u20 hides what is not finite.
      sums_[r] = std::isfinite(now) ? sum + sums_[r] * factor : std::numeric_limits<acc_t>::quiet_NaN();
      if (pair.first_key == 0 || now == before) continue;
      for (int64_t d = 0; d < padded_hd; ++d) combined[d] *= factor;
    }
  }

  acc_t sum(int64_t r) const { return sums_[r]; }
  acc_t logsumexp(int64_t r) const { return largest_[r] + std::log(sums_[r]); }

 private:
  acc_t largest_[kQueries], sums_[kQueries];
};

template <typename acc_t>
void forward(const CausalAttentionTensors& tensors) {
  const Shape<acc_t> shape(tensors);
  const auto q = reading<acc_t>(tensors.q), k = reading<acc_t>(tensors.k), v = reading<acc_t>(tensors.v);
  const auto out = writing<acc_t>(tensors.out);
  auto* logsumexp = tensors.logsumexp.mutable_data_ptr<acc_t>();
  const int64_t H_kv = shape.H / shape.group, keys_size = shape.padded_T * shape.hd,
                values_size = shape.T * shape.padded_hd;
  const Scratch<acc_t> keys(shape.B * H_kv * keys_size), values(shape.B * H_kv * values_size);
  at::parallel_for(0, shape.B * H_kv, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      copy_transposed(keys.get() + i * keys_size, k, i / H_kv, i % H_kv, shape);
      copy_rows(values.get() + i * values_size, v, i / H_kv, i % H_kv, 0, shape.T, shape, acc_t(1));
    }
  });

  const int64_t blocks = (shape.T + kQueries - 1) / kQueries;
  at::parallel_for(0, shape.B * shape.H * blocks, 1, [&](int64_t begin, int64_t end) {
    const Scratch<acc_t> memory(kQueries * (2 * shape.padded_hd + kKeys));
    acc_t *queries = memory.get(), *combined = queries + kQueries * shape.padded_hd,
          *scores = combined + kQueries * shape.padded_hd;
    for (int64_t i = begin; i < end; ++i) {
      // Long and short blocks in turn: every thread gets both.
      const int64_t head = i / blocks, b = head / shape.H, h = head % shape.H, turn = i % blocks;
      const int64_t first = (turn % 2 == 0 ? turn / 2 : blocks - 1 - turn / 2) * kQueries;
      const int64_t kv_head = b * H_kv + h / shape.group, n = std::min(kQueries, shape.T - first);
      copy_rows(queries, q, b, h, first, n, shape, shape.scale);
      Softmax<acc_t> softmax;
      each_pair(first, shape.T, [&](const TilePair& pair) {
        multiply_rows(scores, queries, keys.get() + kv_head * keys_size + pair.first_key * shape.hd, pair, shape);
        softmax.take(scores, combined, pair, shape.padded_hd);
        combine_keys(combined, scores, values.get() + kv_head * values_size + pair.first_key * shape.padded_hd, pair,
                     shape.padded_hd);
      });
      for (int64_t r = 0; r < n; ++r) {
        const acc_t* row = combined + r * shape.padded_hd;
        acc_t* to = out.row(b, first + r, h);
        const acc_t factor = acc_t(1) / softmax.sum(r);
        for (int64_t d = 0; d < shape.hd; ++d) to[d] = factor * row[d];
        logsumexp[head * shape.T + first + r] = softmax.logsumexp(r);
      }
    }
  });
}

template <typename acc_t>
class Backward {
 public:
  Backward(const at::Tensor& grad, const CausalAttentionTensors& tensors, const at::Tensor& grad_q,
           const at::Tensor& grad_k, const at::Tensor& grad_v)
      : shape_(tensors),
        grad_(reading<acc_t>(grad)),
        q_(reading<acc_t>(tensors.q)),
        k_(reading<acc_t>(tensors.k)),
        v_(reading<acc_t>(tensors.v)),
        out_(reading<acc_t>(tensors.out)),
        logsumexp_(tensors.logsumexp.const_data_ptr<acc_t>()),
        grad_q_(writing<acc_t>(grad_q)),
        grad_k_(writing<acc_t>(grad_k)),
        grad_v_(writing<acc_t>(grad_v)) {}

  void run() const {
    at::parallel_for(0, shape_.B * shape_.H, 1, [&](int64_t begin, int64_t end) {
      const Memory memory(shape_);
      for (int64_t i = begin; i < end; ++i) head(i / shape_.H, i % shape_.H, memory);
    });
  }

 private:
  // A thread's: of a whole head, then of a block of queries.
  struct Memory {
    explicit Memory(const Shape<acc_t>& shape)
        : all(2 * shape.padded_T * shape.hd + 3 * shape.T * shape.padded_hd +
              kQueries * (3 * shape.padded_hd + 2 * kKeys)),
          keys_transposed(all.get()),
          values_transposed(keys_transposed + shape.padded_T * shape.hd),
          keys(values_transposed + shape.padded_T * shape.hd),
          grad_keys(keys + shape.T * shape.padded_hd),
          grad_values(grad_keys + shape.T * shape.padded_hd),
          queries(grad_values + shape.T * shape.padded_hd),
          grads(queries + kQueries * shape.padded_hd),
          grad_queries(grads + kQueries * shape.padded_hd),
          p(grad_queries + kQueries * shape.padded_hd),
          ds(p + kQueries * kKeys) {}
    Scratch<acc_t> all;
    acc_t *keys_transposed, *values_transposed, *keys, *grad_keys, *grad_values;
    acc_t *queries, *grads, *grad_queries, *p, *ds;
  };

  void head(int64_t b, int64_t h, const Memory& memory) const {
    const int64_t kv_head = h / shape_.group, size = shape_.T * shape_.padded_hd;
    copy_transposed(memory.keys_transposed, k_, b, kv_head, shape_);
    copy_transposed(memory.values_transposed, v_, b, kv_head, shape_);
    copy_rows(memory.keys, k_, b, kv_head, 0, shape_.T, shape_, acc_t(1));
    std::fill(memory.grad_keys, memory.grad_keys + size, acc_t(0));
    std::fill(memory.grad_values, memory.grad_values + size, acc_t(0));
    for (int64_t first = 0; first < shape_.T; first += kQueries) queries(b, h, first, memory);
    write_rows(grad_k_, memory.grad_keys, b, h, 0, shape_.T, acc_t(1));
    write_rows(grad_v_, memory.grad_values, b, h, 0, shape_.T, acc_t(1));
  }

  // One block. The scale is in the queries: ds^T (scale q) is the gradient of k.
  void queries(int64_t b, int64_t h, int64_t first, const Memory& memory) const {
    const int64_t n = std::min(kQueries, shape_.T - first), padded_hd = shape_.padded_hd;
    copy_rows(memory.queries, q_, b, h, first, n, shape_, shape_.scale);
    copy_rows(memory.grads, grad_, b, h, first, n, shape_, acc_t(1));
    acc_t products[kQueries];
    for (int64_t r = 0; r < n; ++r) {
      products[r] = dot_row<acc_t>(grad_.row(b, first + r, h), out_.row(b, first + r, h), shape_.hd);
    }
    const acc_t* logsumexp = logsumexp_ + (b * shape_.H + h) * shape_.T + first;
    each_pair(first, shape_.T, [&](const TilePair& pair) {
      const int64_t key = pair.first_key;
      multiply_rows(memory.p, memory.queries, memory.keys_transposed + key * shape_.hd, pair, shape_);
      multiply_rows(memory.ds, memory.grads, memory.values_transposed + key * shape_.hd, pair, shape_);
      for (int64_t r = 0; r < n; ++r) {
        score_gradients(memory.p + r * kKeys, memory.ds + r * kKeys, logsumexp[r], products[r], pair.seen(r));
      }
      combine_queries(memory.grad_values + key * padded_hd, memory.p, memory.grads, pair, padded_hd);
      combine_queries(memory.grad_keys + key * padded_hd, memory.ds, memory.queries, pair, padded_hd);
      combine_keys(memory.grad_queries, memory.ds, memory.keys + key * padded_hd, pair, padded_hd);
    });
    write_rows(grad_q_, memory.grad_queries, b, h, first, n, shape_.scale);
  }

  // p from the scores, ds = p (dp - product), both 0 for the keys that are not seen.
  static void score_gradients(acc_t* p, acc_t* ds, acc_t logsumexp, acc_t product, int64_t seen) {
    exponentials(p, logsumexp, seen);
    if (!std::isfinite(logsumexp)) std::fill(p, p + seen, std::numeric_limits<acc_t>::quiet_NaN());
    std::fill(ds + seen, ds + kKeys, acc_t(0));
    for (int64_t j = 0; j < seen; j += Vec<acc_t>::size()) {
      const Vec<acc_t> dp = Vec<acc_t>::loadu(ds + j);
      (Vec<acc_t>::loadu(p + j) * (dp - Vec<acc_t>(product))).store(ds + j);
    }
  }

  void write_rows(const Values<acc_t*>& to, const acc_t* from, int64_t b, int64_t h, int64_t begin, int64_t n,
                  acc_t factor) const {
    for (int64_t i = 0; i < n; ++i, from += shape_.padded_hd) {
      acc_t* row = to.row(b, begin + i, h);
      for (int64_t d = 0; d < shape_.hd; ++d) row[d] = factor * from[d];
    }
  }

  Shape<acc_t> shape_;
  Values<const acc_t*> grad_, q_, k_, v_, out_;
  const acc_t* logsumexp_;
  Values<acc_t*> grad_q_, grad_k_, grad_v_;
};

void forward_kernel(const CausalAttentionTensors& tensors) {
  AT_DISPATCH_FLOATING_TYPES(tensors.q.scalar_type(), "causal_attention", [&] { forward<scalar_t>(tensors); });
}

void backward_kernel(const at::Tensor& grad, const CausalAttentionTensors& tensors, const at::Tensor& grad_q,
                     const at::Tensor& grad_k, const at::Tensor& grad_v) {
  AT_DISPATCH_FLOATING_TYPES(tensors.q.scalar_type(), "causal_attention_backward",
                             [&] { Backward<scalar_t>(grad, tensors, grad_q, grad_k, grad_v).run(); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_causal_attention_stub, &forward_kernel)
ALSO_REGISTER_AVX512_DISPATCH(satformer_causal_attention_backward_stub, &backward_kernel)
#else
REGISTER_DISPATCH(satformer_causal_attention_stub, &forward_kernel)
REGISTER_DISPATCH(satformer_causal_attention_backward_stub, &backward_kernel)
#endif
}  // namespace at::native
