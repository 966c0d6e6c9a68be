// The CPU kernel of linear_cross_entropy, compiled once for each CPU capability. A row of V logits comes from memory
// once; its largest, the sum of its exponentials and its gradients are then found in the cache.
#include "csrc/cpu/linear_cross_entropy_kernel.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "csrc/cpu/row.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT(google-build-using-namespace): the kernels' own names

// NaN where one is among them.
template <typename acc_t>
acc_t largest_of(const acc_t* x, int64_t n) {
  using Vec = vec::Vectorized<acc_t>;
  constexpr acc_t kLowest = -std::numeric_limits<acc_t>::infinity();
  Vec largest[4] = {kLowest, kLowest, kLowest, kLowest};
  for_each_vector<acc_t>(n, [&, x](int64_t j, int64_t count, int k) __attribute__((always_inline)) {
    Vec v = load(x + j, count);
    if (count < Vec::size()) v = Vec::set(Vec(kLowest), v, count);
    largest[k] = vec::maximum(largest[k], v);
  });
  return vec::vec_reduce_all<acc_t>(
      [](Vec a, Vec b) { return vec::maximum(a, b); },
      vec::maximum(vec::maximum(largest[0], largest[1]), vec::maximum(largest[2], largest[3])), Vec::size());
}

// The sum of exp(x - largest); the exponentials are kept in `out` where it is given, which may be x.
template <typename acc_t>
acc_t sum_of_exponentials(acc_t* out, const acc_t* x, acc_t largest, int64_t n) {
  using Vec = vec::Vectorized<acc_t>;
  // exp_u20 hides NaN and has no infinity.
  if (!std::isfinite(largest)) return std::numeric_limits<acc_t>::quiet_NaN();
  Vec sums[4] = {acc_t(0), acc_t(0), acc_t(0), acc_t(0)};
  const Vec shift(largest);
  for_each_vector<acc_t>(n, [&, out, x](int64_t j, int64_t count, int k) __attribute__((always_inline)) {
    Vec e = (load(x + j, count) - shift).exp_u20();
    if (count < Vec::size()) e = Vec::set(Vec(0), e, count);
    if (out) e.store(out + j, count);
    sums[k] = sums[k] + e;
  });
  return sum_of(sums);
}

template <typename acc_t>
void multiply(acc_t* x, acc_t factor, int64_t n) {
  const vec::Vectorized<acc_t> f(factor);
  for_each_vector<acc_t>(n, [=](int64_t j, int64_t count, int) __attribute__((always_inline)) {
    (load<acc_t>(x + j, count) * f).store(x + j, count);
  });
}

template <typename acc_t>
void loss_and_gradients(const LogitRows& rows) {
  const int64_t V = rows.logits.size(1);
  const auto logits = writing<acc_t>(rows.logits);
  const int64_t* targets = rows.targets.const_data_ptr<int64_t>();
  acc_t* losses = rows.losses.mutable_data_ptr<acc_t>();
  const auto scale = static_cast<acc_t>(rows.scale);
  at::parallel_for(0, rows.logits.size(0), rows_a_task(V), [&](int64_t begin, int64_t end) {
    const Scratch<acc_t> scratch(logits.direct() ? 0 : V);
    for (int64_t i = begin; i < end; ++i) {
      acc_t* row = logits.target(i, scratch.get());
      if (targets[i] == rows.ignore_index) {
        losses[i] = 0;
        if (!rows.with_gradients) continue;
        std::fill(row, row + V, acc_t(0));
        logits.write(i, row, V);
        continue;
      }
      if (!logits.direct()) logits.load(i, row, V);
      const acc_t of_target = row[targets[i]], largest = largest_of(row, V);
      const acc_t sum = sum_of_exponentials(rows.with_gradients ? row : nullptr, row, largest, V);
      losses[i] = scale * (std::log(sum) + (largest - of_target));
      if (!rows.with_gradients) continue;
      multiply(row, scale / sum, V);
      row[targets[i]] -= scale;
      logits.write(i, row, V);
    }
  });
}

void logit_rows_kernel(const LogitRows& rows) {
  rows.losses.scalar_type() == kDouble ? loss_and_gradients<double>(rows) : loss_and_gradients<float>(rows);
}

}  // namespace

SATFORMER_REGISTER_DISPATCH(satformer_logit_rows_stub, &logit_rows_kernel)
}  // namespace at::native
