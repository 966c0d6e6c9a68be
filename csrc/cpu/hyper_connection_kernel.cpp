// CPU kernel of the hyper-connections' read (formulas: csrc/ops/hyper_connection.h), compiled once for each CPU
// capability.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/hyper_connection_token.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT: kernels must live in this namespace

template <typename scalar_t>
void read(const HyperConnectionData& data, const HyperConnectionOutputs& out) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t n = data.n, d = data.d;
  at::parallel_for(0, data.B * data.T, tokens_a_task(2 * n * d), [&](int64_t begin, int64_t end) {
    StreamsToken<scalar_t, acc_t> token(data);
    Scratch<acc_t> space((n + 1) * d), coefficients((n + 1) * n);
    acc_t* rows[kRows];
    for (int64_t k = begin; k < end; ++k) {
      token.load(k / data.T, k % data.T);
      if (data.projections) {
        if (data.layer_norm) token.find_means();
        token.find_logits();
        token.bound();
        token.store_kept(static_cast<acc_t*>(out.kept) + k * n * (n + 4));
      }
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t m = 0; m <= n; ++m) coefficients[m * n + i] = token.coefficient(i, m);
        static_cast<acc_t*>(out.beta)[k * n + i] = token.coefficient(i, n + 1);
      }
      scalar_t *input = static_cast<scalar_t*>(out.input) + k * d,
               *mixed = static_cast<scalar_t*>(out.mixed) + k * n * d;
      result_rows(rows, input, space.get(), 1, d);
      result_rows(rows + 1, mixed, space.get() + d, n, d);
      combine(n + 1, rows, token.h, coefficients.get(), n, n, d, /*add=*/false);
      store_row(input, rows[0], d);
      for (int64_t i = 0; i < n; ++i) store_row(mixed + i * d, rows[i + 1], d);
    }
  });
}

void read_kernel(const HyperConnectionData& data, const HyperConnectionOutputs& out) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, data.dtype, "hyper_connection_read",
                                  [&] { read<scalar_t>(data, out); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_hyper_connection_read_stub, &read_kernel)
#else
REGISTER_DISPATCH(satformer_hyper_connection_read_stub, &read_kernel)
#endif
}  // namespace at::native
