// CPU kernel of the backward of the hyper-connections' read (formulas: csrc/ops/hyper_connection.h), compiled once for
// each CPU capability.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/hyper_connection_token.h"
#include "csrc/ops/hyper_connection_checks.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT: kernels must live in this namespace

// Gradients of one token's streams; partial sums for the parameters, in the order of `sums`.
template <typename scalar_t>
class ReadBackward {
  using acc_t = at::opmath_type<scalar_t>;

 public:
  ReadBackward(const HyperConnectionData& data, const HyperConnectionBackwardData& backward)
      : n(data.n),
        d(data.d),
        K(data.n + 2),
        data_(data),
        backward_(backward),
        token_(data),
        grads_((n + 1) * d),
        results_(n * d),
        grad_alpha_(n * (n + 1)),
        factors_(n * (2 * n + 3)),
        transposed_(n * K) {}

  void run(int64_t b, int64_t t, acc_t* sums) {
    const int64_t k = b * data_.T + t;
    token_.load(b, t);
    if (data_.projections) {
      token_.load_kept(numbers<acc_t>(backward_.kept) + k * n * (n + 4));
      token_.bound();
    }
    const acc_t* rows[kRows];  // the gradients of M_0..n, the projections
    rows[0] = widened<acc_t>(row_of<scalar_t>(backward_.grad_input, b, t), grads_.get(), d);
    for (int64_t i = 0; i < n; ++i) {
      rows[i + 1] = widened<acc_t>(row_of<scalar_t>(backward_.grad_mixed, b, t, i), grads_.get() + (i + 1) * d, d);
    }
    dots(grad_alpha_.get(), n + 1, n, token_.h, n + 1, rows, d);
    const acc_t* grad_beta = numbers<acc_t>(backward_.grad_beta) + k * n;
    const acc_t* projections = numbers<acc_t>(data_.projections);
    const bool dynamic = projections != nullptr;
    acc_t* small_sums = sums + (dynamic ? K * d + K + 2 : 0);
    for (int64_t i = 0; i < n * (n + 1); ++i) small_sums[i] += grad_alpha_[i];
    for (int64_t i = 0; i < n; ++i) small_sums[n * (n + 1) + i] += grad_beta[i];

    const int64_t terms = n + 1 + (dynamic ? K : 0);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t m = 0; m <= n; ++m) factors_[i * terms + m] = token_.coefficient(i, m);
    }
    acc_t* results[kRows];
    scalar_t* out = static_cast<scalar_t*>(backward_.grad_streams) + k * n * d;
    result_rows(results, out, results_.get(), n, d);
    if (dynamic) {
      for (int64_t m = 0; m < K; ++m) rows[n + 1 + m] = projections + m * d;
      through_projections(grad_beta, terms, results, sums);
    }
    combine(n, results, rows, factors_.get(), terms, terms, d, /*add=*/dynamic);
    for (int64_t i = 0; i < n; ++i) store_row(out + i * d, results[i], d);
  }

 private:
  // From the gradient g_im of the logits z_im, with q_m the rows of the projections:
  //   d h_i = r_i (sum_m g_im q_m - mean) - x_i r_i^2 / d sum_m g_im (z_im - offset_m),  the mean with LayerNorm alone;
  // the sum over q_m is left to the caller's combination, the rest written to results.
  void through_projections(const acc_t* grad_beta, int64_t terms, acc_t* const* results, acc_t* sums) {
    using Vec = vec::Vectorized<acc_t>;
    const acc_t *offsets = numbers<acc_t>(data_.projection_offsets), *means = numbers<acc_t>(data_.projection_means);
    acc_t *logit_sums = sums + K * d, *scale_sums = logit_sums + K;
    for (int64_t i = 0; i < n; ++i) {
      const acc_t r = token_.inverse[i];
      acc_t along = 0, mean = 0;
      for (int64_t m = 0; m < K; ++m) {
        const acc_t f = token_.bounded[i * K + m], g = m > n ? grad_beta[i] : grad_alpha_[i * (n + 1) + m];
        scale_sums[m > n ? 1 : 0] += g * f;
        const acc_t to_logit = g * token_.scale(m) * token_.slope(f);
        logit_sums[m] += to_logit;
        along += to_logit * (token_.logits[i * K + m] - offsets[m]);
        mean += to_logit * means[m];
        factors_[i * terms + n + 1 + m] = r * to_logit;
        transposed_[m * n + i] = r * to_logit;
      }
      const Vec along_x(-r * r * along / static_cast<acc_t>(d)), constant(data_.layer_norm ? -r * mean : acc_t(0));
      vec::map([along_x, constant](Vec a) { return vec::fmadd(along_x, a, constant); }, results[i], token_.x[i], d);
    }
    acc_t* projection_sums[kRows];
    for (int64_t m = 0; m < K; ++m) projection_sums[m] = sums + m * d;
    combine(K, projection_sums, token_.x, transposed_.get(), n, n, d, /*add=*/true);
  }

  const int64_t n, d, K;  // NOLINT(readability-identifier-naming): as in the formulas
  const HyperConnectionData& data_;
  const HyperConnectionBackwardData& backward_;
  StreamsToken<scalar_t, acc_t> token_;
  Scratch<acc_t> grads_, results_, grad_alpha_, factors_, transposed_;
};

template <typename scalar_t>
void read_backward(const HyperConnectionData& data, const HyperConnectionBackwardData& backward) {
  using acc_t = at::opmath_type<scalar_t>;
  const TokenBlocks blocks(data.B * data.T);
  const int64_t size = hyper_connection_sums(data.n, data.d, data.projections != nullptr);
  Scratch<acc_t> partials(blocks.count() * size);
  at::parallel_for(0, blocks.count(), 1, [&](int64_t begin, int64_t end) {
    ReadBackward<scalar_t> token(data, backward);
    for (int64_t block = begin; block < end; ++block) {
      acc_t* sums = partials.get() + block * size;
      std::fill_n(sums, size, acc_t(0));
      for (int64_t k = blocks.begin(block); k < blocks.end(block); ++k) token.run(k / data.T, k % data.T, sums);
    }
  });
  sum_partials(static_cast<acc_t*>(backward.sums), partials.get(), blocks.count(), size, size);
}

void read_backward_kernel(const HyperConnectionData& data, const HyperConnectionBackwardData& backward) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, data.dtype, "hyper_connection_read_backward",
                                  [&] { read_backward<scalar_t>(data, backward); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_hyper_connection_read_backward_stub, &read_backward_kernel)
#else
REGISTER_DISPATCH(satformer_hyper_connection_read_backward_stub, &read_backward_kernel)
#endif
}  // namespace at::native
