// CPU kernel of causal attention's backward pass, compiled once for each CPU capability (see cpu/gate_row.h on what may
// stand here). A head's gradients are summed by one thread, so that the number of threads changes no bit.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/causal_attention_tiles.h"
#include "csrc/cpu/scratch.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // rows and tiles; nothing of at::native but the registration is used here

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

void backward_kernel(const at::Tensor& grad, const CausalAttentionTensors& tensors, const at::Tensor& grad_q,
                     const at::Tensor& grad_k, const at::Tensor& grad_v) {
  AT_DISPATCH_FLOATING_TYPES(tensors.q.scalar_type(), "causal_attention_backward",
                             [&] { Backward<scalar_t>(grad, tensors, grad_q, grad_k, grad_v).run(); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_causal_attention_backward_stub, &backward_kernel)
#else
REGISTER_DISPATCH(satformer_causal_attention_backward_stub, &backward_kernel)
#endif
}  // namespace at::native
