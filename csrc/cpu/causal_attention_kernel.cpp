// CPU kernel of causal attention's forward pass, compiled once for each CPU capability (see cpu/gate_row.h on what may
// stand here). A query's numbers depend on its row and the blocks' sizes alone, so that the number of threads changes
// no bit.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/causal_attention_tiles.h"
#include "csrc/cpu/scratch.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // rows and tiles; nothing of at::native but the registration is used here

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

void forward_kernel(const CausalAttentionTensors& tensors) {
  AT_DISPATCH_FLOATING_TYPES(tensors.q.scalar_type(), "causal_attention", [&] { forward<scalar_t>(tensors); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_causal_attention_stub, &forward_kernel)
#else
REGISTER_DISPATCH(satformer_causal_attention_stub, &forward_kernel)
#endif
}  // namespace at::native
