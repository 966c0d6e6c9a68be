// CPU kernels of hyper_connection_write (formulas: csrc/ops/hyper_connection.h), compiled once for each CPU capability.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/hyper_connection_kernel.h"
#include "csrc/cpu/row_products.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT: kernels must live in this namespace

// result may be mixed, or contiguous.
template <typename scalar_t>
void write(const Tensor& result, const Tensor& mixed, const Tensor& beta, const Tensor& out) {
  using acc_t = at::opmath_type<scalar_t>;
  using Vec = vec::Vectorized<acc_t>;
  const int64_t T = mixed.size(1), n = mixed.size(2), d = mixed.size(3);
  scalar_t* to = result.mutable_data_ptr<scalar_t>();
  const scalar_t *from = mixed.const_data_ptr<scalar_t>(), *added = out.const_data_ptr<scalar_t>();
  const acc_t* factors = beta.const_data_ptr<acc_t>();
  const auto to_strides = result.strides(), from_strides = mixed.strides(), out_strides = out.strides();
  at::parallel_for(0, mixed.size(0) * T, tokens_a_task(n * d), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t b = k / T, t = k % T;
      const scalar_t* row = added + b * out_strides[0] + t * out_strides[1];
      for (int64_t i = 0; i < n; ++i) {
        vec::map2<scalar_t>([factor = Vec(factors[k * n + i])](Vec x, Vec y) { return vec::fmadd(factor, y, x); },
                            to + b * to_strides[0] + t * to_strides[1] + i * to_strides[2],
                            from + b * from_strides[0] + t * from_strides[1] + i * from_strides[2], row, d);
      }
    }
  });
}

// grad and out contiguous in d; grad_beta and grad_out contiguous.
template <typename scalar_t>
void write_backward(const Tensor& grad_beta, const Tensor& grad_out, const Tensor& grad, const Tensor& beta,
                    const Tensor& out) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t T = grad.size(1), n = grad.size(2), d = grad.size(3);
  const scalar_t *grads = grad.const_data_ptr<scalar_t>(), *outs = out.const_data_ptr<scalar_t>();
  const acc_t* factors = beta.const_data_ptr<acc_t>();
  acc_t* to_beta = grad_beta.mutable_data_ptr<acc_t>();
  scalar_t* to_out = grad_out.mutable_data_ptr<scalar_t>();
  const auto grad_strides = grad.strides(), out_strides = out.strides();
  at::parallel_for(0, grad.size(0) * T, tokens_a_task(n * d), [&](int64_t begin, int64_t end) {
    Scratch<acc_t> space((n + 2) * d);
    Scratch<const acc_t*> rows(n);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t b = k / T, t = k % T;
      for (int64_t i = 0; i < n; ++i) {
        const scalar_t* row = grads + b * grad_strides[0] + t * grad_strides[1] + i * grad_strides[2];
        rows[i] = widened<acc_t>(row, space.get() + i * d, d);
      }
      const acc_t* y = widened<acc_t>(outs + b * out_strides[0] + t * out_strides[1], space.get() + n * d, d);
      dots(to_beta + k * n, n, 1, &y, n, rows.get(), d);
      acc_t* sum = space.get() + (n + 1) * d;
      if constexpr (std::is_same_v<scalar_t, acc_t>) sum = to_out + k * d;
      combine(1, &sum, rows.get(), factors + k * n, n, n, d, /*add=*/false);
      store_row(to_out + k * d, sum, d);
    }
  });
}

void write_kernel(const Tensor& result, const Tensor& mixed, const Tensor& beta, const Tensor& out) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, mixed.scalar_type(), "hyper_connection_write",
                                  [&] { write<scalar_t>(result, mixed, beta, out); });
}
void write_backward_kernel(const Tensor& grad_beta, const Tensor& grad_out, const Tensor& grad, const Tensor& beta,
                           const Tensor& out) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, grad.scalar_type(), "hyper_connection_write_backward",
                                  [&] { write_backward<scalar_t>(grad_beta, grad_out, grad, beta, out); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_hyper_connection_write_stub, &write_kernel)
ALSO_REGISTER_AVX512_DISPATCH(satformer_hyper_connection_write_backward_stub, &write_backward_kernel)
#else
REGISTER_DISPATCH(satformer_hyper_connection_write_stub, &write_kernel)
REGISTER_DISPATCH(satformer_hyper_connection_write_backward_stub, &write_backward_kernel)
#endif
}  // namespace at::native
