// CPU kernels of rms_norm, compiled once for each CPU capability. A row of n numbers is read from memory once and
// worked on in the first-level cache; what a row gets does not depend on the number of threads.
#include "csrc/cpu/rms_norm_kernel.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "csrc/cpu/row.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT(google-build-using-namespace): the kernels' own names

// out = x + y
template <typename acc_t>
void add(acc_t* out, const acc_t* x, const acc_t* y, int64_t n) {
  for_each_vector<acc_t>(n, [=](int64_t j, int64_t count, int) __attribute__((always_inline)) {
    (load(x + j, count) + load(y + j, count)).store(out + j, count);
  });
}

template <typename acc_t>
acc_t sum_of_squares(const acc_t* x, int64_t n) {
  vec::Vectorized<acc_t> sums[4] = {acc_t(0), acc_t(0), acc_t(0), acc_t(0)};
  for_each_vector<acc_t>(n, [&, x](int64_t j, int64_t count, int k) __attribute__((always_inline)) {
    const auto v = load(x + j, count);
    sums[k] = vec::fmadd(v, v, sums[k]);
  });
  return sum_of(sums);
}

// out = x scale weight
template <typename acc_t>
void scale(acc_t* out, const acc_t* x, acc_t scale, const acc_t* weight, int64_t n) {
  const vec::Vectorized<acc_t> s(scale);
  for_each_vector<acc_t>(n, [=](int64_t j, int64_t count, int) __attribute__((always_inline)) {
    (load(x + j, count) * s * load(weight + j, count)).store(out + j, count);
  });
}

template <typename acc_t>
void norm(const NormRows& rows) {
  const int64_t m = rows.x.size(0), n = rows.x.size(1);
  const auto x = reading<acc_t>(rows.x), residual = reading<acc_t>(rows.residual);
  const auto sum = writing<acc_t>(rows.sum), y = writing<acc_t>(rows.y);
  const acc_t* weight = rows.weight.const_data_ptr<acc_t>();
  acc_t* inverse_rms = rows.inverse_rms.mutable_data_ptr<acc_t>();
  at::parallel_for(0, m, rows_a_task(n), [&](int64_t begin, int64_t end) {
    const Scratch<acc_t> scratch(3 * n);
    for (int64_t i = begin; i < end; ++i) {
      const acc_t* row = x.read(i, scratch.get(), n);
      if (residual.defined()) {
        acc_t* out = sum.target(i, scratch.get());
        add(out, row, residual.read(i, scratch.get() + n, n), n);
        sum.write(i, out, n);
        if (!sum.direct()) reading<acc_t>(rows.sum).load(i, out, n);  // as it was rounded
        row = out;
      }
      inverse_rms[i] =
          acc_t(1) / std::sqrt(sum_of_squares(row, n) / static_cast<acc_t>(n) + static_cast<acc_t>(rows.eps));
      acc_t* out = y.target(i, scratch.get() + 2 * n);
      scale(out, row, inverse_rms[i], weight, n);
      y.write(i, out, n);
    }
  });
}

template <typename acc_t>
void apply(const NormRows& rows) {
  const int64_t m = rows.x.size(0), n = rows.x.size(1);
  const auto x = reading<acc_t>(rows.x);
  const auto y = writing<acc_t>(rows.y);
  const acc_t* weight = rows.weight.const_data_ptr<acc_t>();
  const acc_t* inverse_rms = rows.inverse_rms.const_data_ptr<acc_t>();
  at::parallel_for(0, m, rows_a_task(n), [&](int64_t begin, int64_t end) {
    const Scratch<acc_t> scratch(2 * n);
    for (int64_t i = begin; i < end; ++i) {
      acc_t* out = y.target(i, scratch.get() + n);
      scale(out, x.read(i, scratch.get(), n), inverse_rms[i], weight, n);
      y.write(i, out, n);
    }
  });
}

// Returns the sum of grad weight x and adds grad x r to sums.
template <typename acc_t>
acc_t reduce_row(acc_t* sums, const acc_t* grad, const acc_t* x, const acc_t* weight, acc_t r, int64_t n) {
  using Vec = vec::Vectorized<acc_t>;
  Vec dots[4] = {acc_t(0), acc_t(0), acc_t(0), acc_t(0)};
  const Vec inverse(r);
  for_each_vector<acc_t>(n, [&, sums, grad, x, weight](int64_t j, int64_t count, int k) __attribute__((always_inline)) {
    const Vec product = load(grad + j, count) * load(x + j, count);
    dots[k] = vec::fmadd(product, load(weight + j, count), dots[k]);
    vec::fmadd(product, inverse, load<acc_t>(sums + j, count)).store(sums + j, count);
  });
  return sum_of(dots);
}

// out = r (grad weight - x slope) + grad_sum, where given
template <typename acc_t>
void gradient_row(acc_t* out, const acc_t* grad, const acc_t* x, const acc_t* weight, const acc_t* grad_sum, acc_t r,
                  acc_t slope, int64_t n) {
  using Vec = vec::Vectorized<acc_t>;
  const Vec inverse(r), minus_slope(-slope);
  for_each_vector<acc_t>(n, [=](int64_t j, int64_t count, int) __attribute__((always_inline)) {
    const Vec through = load(grad + j, count) * load(weight + j, count);
    const Vec inner = vec::fmadd(load(x + j, count), minus_slope, through);
    const Vec result = grad_sum ? vec::fmadd(inner, inverse, load(grad_sum + j, count)) : inner * inverse;
    result.store(out + j, count);
  });
}

template <typename acc_t>
void backward(const NormBackwardRows& rows) {
  const int64_t m = rows.sum.size(0), n = rows.sum.size(1), blocks = rows.partial_sums.size(0);
  const auto grad_y = reading<acc_t>(rows.grad_y), grad_sum = reading<acc_t>(rows.grad_sum);
  const auto sum = reading<acc_t>(rows.sum);
  const auto grad_x = writing<acc_t>(rows.grad_x), grad_residual = writing<acc_t>(rows.grad_residual);
  const acc_t* weight = rows.weight.const_data_ptr<acc_t>();
  const acc_t* inverse_rms = rows.inverse_rms.const_data_ptr<acc_t>();
  acc_t* partial_sums = rows.partial_sums.mutable_data_ptr<acc_t>();
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    const Scratch<acc_t> scratch(4 * n);
    for (int64_t block = first; block < last; ++block) {
      acc_t* sums = partial_sums + block * n;
      std::fill(sums, sums + n, acc_t(0));
      const int64_t end = std::min(m, (block + 1) * rows.rows_a_block);
      for (int64_t i = block * rows.rows_a_block; i < end; ++i) {
        const acc_t* grad = grad_y.read(i, scratch.get(), n);
        const acc_t* x = sum.read(i, scratch.get() + n, n);
        const acc_t* through = grad_sum.defined() ? grad_sum.read(i, scratch.get() + 2 * n, n) : nullptr;
        const acc_t r = inverse_rms[i];
        const acc_t dot = reduce_row(sums, grad, x, weight, r, n);
        acc_t* out = grad_x.target(i, scratch.get() + 3 * n);
        gradient_row(out, grad, x, weight, through, r, r * r * (dot / static_cast<acc_t>(n)), n);
        grad_x.write(i, out, n);
        if (grad_residual.defined()) grad_residual.write(i, out, n);
      }
    }
  });
  const Scratch<acc_t> total(n);
  std::fill(total.get(), total.get() + n, acc_t(0));
  for (int64_t block = 0; block < blocks; ++block) add(total.get(), total.get(), partial_sums + block * n, n);
  writing<acc_t>(rows.grad_weight).write(0, total.get(), n);
}

void norm_kernel(const NormRows& rows) {
  rows.weight.scalar_type() == kDouble ? norm<double>(rows) : norm<float>(rows);
}
void apply_kernel(const NormRows& rows) {
  rows.weight.scalar_type() == kDouble ? apply<double>(rows) : apply<float>(rows);
}
void backward_kernel(const NormBackwardRows& rows) {
  rows.weight.scalar_type() == kDouble ? backward<double>(rows) : backward<float>(rows);
}

}  // namespace

SATFORMER_REGISTER_DISPATCH(satformer_rms_norm_stub, &norm_kernel)
SATFORMER_REGISTER_DISPATCH(satformer_rms_norm_apply_stub, &apply_kernel)
SATFORMER_REGISTER_DISPATCH(satformer_rms_norm_backward_stub, &backward_kernel)
}  // namespace at::native
