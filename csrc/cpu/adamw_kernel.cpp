// CPU kernel of adamw_, compiled once for each CPU capability: one pass, in pieces that stay in the first-level cache
// where a dtype needs conversion.
#include "csrc/cpu/adamw_kernel.h"

#include "csrc/cpu/each_block.h"
#include "csrc/cpu/row.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT(google-build-using-namespace): the kernels' own names

constexpr int64_t kPiece = 512;

template <typename acc_t>
struct Factors {
  using Vec = vec::Vectorized<acc_t>;

  Factors(const AdamWCoefficients& c, const AdamWItem& item)
      : gradient(static_cast<acc_t>(c.gradient_factor)),
        beta1(static_cast<acc_t>(c.beta1)),
        rest1(static_cast<acc_t>(1 - c.beta1)),
        beta2(static_cast<acc_t>(c.beta2)),
        rest2(static_cast<acc_t>(1 - c.beta2)),
        eps(static_cast<acc_t>(c.eps)),
        decay(static_cast<acc_t>(c.decay)),
        minus_step_size(static_cast<acc_t>(-item.step_size)),
        inverse_root(static_cast<acc_t>(item.inverse_root)) {}

  Vec gradient, beta1, rest1, beta2, rest2, eps, decay, minus_step_size, inverse_root;
};

// Every sum is an explicit fmadd, so that whole vectors and the rest of a row are computed alike, bit for bit.
template <typename acc_t>
void update_piece(acc_t* p, acc_t* m, acc_t* v, const acc_t* gradient, int64_t n, const Factors<acc_t>& factors) {
  using Vec = vec::Vectorized<acc_t>;
  const Factors<acc_t> f = factors;
  for_each_vector<acc_t>(n, [f, gradient, m, v, p](int64_t j, int64_t count, int) __attribute__((always_inline)) {
    const Vec g = load(gradient + j, count) * f.gradient;
    const Vec mean = vec::fmadd(f.beta1, load(m + j, count), f.rest1 * g);
    const Vec square = vec::fmadd(f.rest2 * g, g, f.beta2 * load(v + j, count));
    const Vec denominator = vec::fmadd(square.sqrt(), f.inverse_root, f.eps);
    vec::fmadd(f.minus_step_size, mean / denominator, f.decay * load(p + j, count)).store(p + j, count);
    mean.store(m + j, count);
    square.store(v + j, count);
  });
}

// n numbers from `begin` on, to be changed: where they lie, or in the buffer.
template <typename acc_t>
acc_t* take(const WriteRows<acc_t>& numbers, acc_t* buffer, int64_t n, int64_t begin) {
  if (numbers.direct()) return numbers.place(0, begin);
  numbers.load(0, buffer, n, begin);
  return buffer;
}

template <typename acc_t>
void update_block(const AdamWItem& item, const AdamWCoefficients& coefficients, int64_t begin, int64_t end) {
  const WriteRows<acc_t> parameter(item.parameter.data, item.parameter.dtype, /*stride=*/0),
      exp_avg(item.exp_avg.data, item.exp_avg.dtype, 0), exp_avg_sq(item.exp_avg_sq.data, item.exp_avg_sq.dtype, 0);
  const ReadRows<acc_t> gradient(item.gradient.data, item.gradient.dtype, 0);
  const Factors<acc_t> factors(coefficients, item);
  acc_t buffers[4][kPiece];
  for (int64_t j = begin; j < end; j += kPiece) {
    const int64_t n = std::min(kPiece, end - j);
    acc_t *p = take(parameter, buffers[0], n, j), *m = take(exp_avg, buffers[1], n, j),
          *v = take(exp_avg_sq, buffers[2], n, j);
    update_piece(p, m, v, gradient.read(0, buffers[3], n, j), n, factors);
    parameter.write(0, p, n, j);
    exp_avg.write(0, m, n, j);
    exp_avg_sq.write(0, v, n, j);
  }
}

void adamw_kernel(const AdamWItem* items, const FlatBlocks& blocks, const AdamWCoefficients& coefficients) {
  for_each_block(blocks, [&](const FlatBlock& block) {
    const AdamWItem& item = items[block.tensor];
    const int64_t end = block.begin + block.size;
    item.parameter.dtype == kDouble ? update_block<double>(item, coefficients, block.begin, end)
                                    : update_block<float>(item, coefficients, block.begin, end);
  });
}

}  // namespace

SATFORMER_REGISTER_DISPATCH(satformer_adamw_stub, &adamw_kernel)
}  // namespace at::native
