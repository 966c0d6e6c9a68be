// CPU kernels of depth_weighted_sum and inverse_rms, forward (formulas: csrc/ops/depth_weighted_sum.h), compiled once
// for each CPU capability.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>

#include "csrc/cpu/depth_token.h"
#include "csrc/cpu/depth_weighted_sum_kernel.h"

namespace at::native {
namespace {

using namespace satformer::ops;  // NOLINT: kernels must live in this namespace

template <typename scalar_t>
void sum_kernel(const DepthSumData& data, void* const* out) {
  using acc_t = at::opmath_type<scalar_t>;
  using Vec = vec::Vectorized<acc_t>;
  constexpr bool kInPlace = std::is_same_v<scalar_t, acc_t>;
  const int64_t C = data.ways, d = data.d;
  const bool normed = data.output_norm_weights != nullptr;
  at::parallel_for(0, data.B * data.T, tokens_a_task((data.sources + C) * d), [&](int64_t begin, int64_t end) {
    DepthToken<scalar_t, acc_t> token(data, data.base.data && !normed);
    Scratch<acc_t> space(kInPlace ? 0 : C * d), base_space(kInPlace ? 0 : d);
    Scratch<acc_t*> sums(C);
    for (int64_t i = begin; i < end; ++i) {
      token.load(i / data.T, i % data.T);
      for (int64_t c = 0; c < C; ++c) {
        if constexpr (kInPlace) {
          sums[c] = static_cast<acc_t*>(out[c]) + i * d;
        } else {
          sums[c] = space.get() + c * d;
        }
      }
      token.sum(sums.get());
      const acc_t* base = normed && data.base.data ? token.base(base_space.get()) : nullptr;
      for (int64_t c = 0; c < C; ++c) {
        if (normed) {
          const Vec r(token.inverse_of_sum(sums[c]));
          const acc_t* p = acc_row<acc_t>(data.output_norm_weights[c], 0);
          if (base) {
            vec::map3([r](Vec s, Vec w, Vec x) { return vec::fmadd(s * r, w, x); }, sums[c], sums[c], p, base, d);
          } else {
            vec::map2([r](Vec s, Vec w) { return s * r * w; }, sums[c], sums[c], p, d);
          }
        }
        store_row(static_cast<scalar_t*>(out[c]) + i * d, sums[c], d);
      }
    }
  });
}

template <typename scalar_t>
void inverse_rms_rows(const Tensor& inverse, const Tensor& x, double eps) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t d = x.size(1), stride = x.stride(0);
  const scalar_t* data = x.const_data_ptr<scalar_t>();
  acc_t* out = inverse.mutable_data_ptr<acc_t>();
  at::parallel_for(0, x.size(0), tokens_a_task(d), [&](int64_t begin, int64_t end) {
    Scratch<acc_t> space(d);
    for (int64_t i = begin; i < end; ++i) {
      const acc_t* row = widened<acc_t>(data + i * stride, space.get(), d);
      const acc_t mean = dot(row, row, d) / static_cast<acc_t>(d);
      out[i] = acc_t(1) / std::sqrt(mean + static_cast<acc_t>(eps));
    }
  });
}

// d x = -grad r^3 / d x
template <typename scalar_t>
void inverse_rms_backward_rows(const Tensor& grad_x, const Tensor& grad, const Tensor& x, const Tensor& inverse) {
  using acc_t = at::opmath_type<scalar_t>;
  const int64_t d = x.size(1), stride = x.stride(0);
  const scalar_t* data = x.const_data_ptr<scalar_t>();
  scalar_t* out = grad_x.mutable_data_ptr<scalar_t>();
  const acc_t *g = grad.const_data_ptr<acc_t>(), *r = inverse.const_data_ptr<acc_t>();
  at::parallel_for(0, x.size(0), tokens_a_task(d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      using Vec = vec::Vectorized<acc_t>;
      const Vec factor(-g[i] * r[i] * r[i] * r[i] / static_cast<acc_t>(d));
      vec::map<scalar_t>([factor](Vec a) { return factor * a; }, out + i * d, data + i * stride, d);
    }
  });
}

void depth_sum(const DepthSumData& data, void* const* out) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, data.dtype, "depth_weighted_sum",
                                  [&] { sum_kernel<scalar_t>(data, out); });
}
void inverse_rms_kernel(const Tensor& inverse, const Tensor& x, double eps) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, x.scalar_type(), "inverse_rms",
                                  [&] { inverse_rms_rows<scalar_t>(inverse, x, eps); });
}
void inverse_rms_backward_kernel(const Tensor& grad_x, const Tensor& grad, const Tensor& x, const Tensor& inverse) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, x.scalar_type(), "inverse_rms_backward",
                                  [&] { inverse_rms_backward_rows<scalar_t>(grad_x, grad, x, inverse); });
}

}  // namespace

// ALSO: the plain macro leaves AVX-512 to the AVX2 code.
#ifdef CPU_CAPABILITY_AVX512
ALSO_REGISTER_AVX512_DISPATCH(satformer_depth_weighted_sum_stub, &depth_sum)
ALSO_REGISTER_AVX512_DISPATCH(satformer_inverse_rms_stub, &inverse_rms_kernel)
ALSO_REGISTER_AVX512_DISPATCH(satformer_inverse_rms_backward_stub, &inverse_rms_backward_kernel)
#else
REGISTER_DISPATCH(satformer_depth_weighted_sum_stub, &depth_sum)
REGISTER_DISPATCH(satformer_inverse_rms_stub, &inverse_rms_kernel)
REGISTER_DISPATCH(satformer_inverse_rms_backward_stub, &inverse_rms_backward_kernel)
#endif
}  // namespace at::native
