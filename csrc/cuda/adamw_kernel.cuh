// CUDA kernel of adamw_ (formulas: csrc/ops/adamw.h): one pass over up to kMostUpdated parameters.
#pragma once
#include "csrc/cuda/adamw_launch.h"
#include "csrc/cuda/flat_list.cuh"

namespace satformer::ops::cuda {

constexpr int64_t kAdamWBlock = kFlatThreads * kEight * 4;  // numbers a block updates
constexpr int kMostUpdated = 40;                            // parameters a launch

struct AdamWTable {
  AdamWCoefficients coefficients;
  AdamWItem items[kMostUpdated];
  int first_block[kMostUpdated];
  int count;
};
static_assert(sizeof(AdamWTable) <= kArgumentBytes, "a launch's arguments");

// The coefficients in the arithmetic dtype.
template <typename acc_t>
struct AdamWFactors {
  acc_t gradient, beta1, rest1, beta2, rest2, eps, decay, step_size, inverse_root;
};

template <typename acc_t>
__device__ __forceinline__ AdamWFactors<acc_t> factors_of(const AdamWCoefficients& c, double step_size,
                                                          double inverse_root) {
  const acc_t gradient = c.gradient_factor.dtype == DType::kFloat64
                             ? static_cast<acc_t>(*static_cast<const double*>(c.gradient_factor.data))
                             : static_cast<acc_t>(*static_cast<const float*>(c.gradient_factor.data));
  return {gradient,
          static_cast<acc_t>(c.beta1),
          static_cast<acc_t>(1 - c.beta1),
          static_cast<acc_t>(c.beta2),
          static_cast<acc_t>(1 - c.beta2),
          static_cast<acc_t>(c.eps),
          static_cast<acc_t>(c.decay),
          static_cast<acc_t>(step_size),
          static_cast<acc_t>(inverse_root)};
}

template <typename acc_t>
__device__ __forceinline__ void update(acc_t& p, acc_t& m, acc_t& v, acc_t gradient, const AdamWFactors<acc_t>& f) {
  const acc_t g = gradient * f.gradient;
  m = f.beta1 * m + f.rest1 * g;
  v = f.beta2 * v + f.rest2 * g * g;
  p = f.decay * p - f.step_size * (m / (sqrt(v) * f.inverse_root + f.eps));
}

template <typename acc_t>
static __global__ void __launch_bounds__(kFlatThreads) adamw_kernel(AdamWTable table) {
  const int block = static_cast<int>(blockIdx.x), tensor = tensor_of_block(table, block);
  const FlatNumbers<void*> parameter = table.items[tensor].parameter, exp_avg = table.items[tensor].exp_avg,
                           exp_avg_sq = table.items[tensor].exp_avg_sq;
  const FlatNumbers<const void*> gradient = table.items[tensor].gradient;
  const int64_t begin = (block - table.first_block[tensor]) * kAdamWBlock, n = table.items[tensor].n;
  const int64_t end = begin + kAdamWBlock < n ? begin + kAdamWBlock : n;
  const AdamWFactors<acc_t> factors =
      factors_of<acc_t>(table.coefficients, table.items[tensor].step_size, table.items[tensor].inverse_root);
  for (int64_t i = begin + static_cast<int64_t>(threadIdx.x) * kEight; i < end; i += kFlatThreads * kEight) {
    acc_t p[kEight], m[kEight], v[kEight], g[kEight];
    load_own(p, parameter, i, n);
    load_own(m, exp_avg, i, n);
    load_own(v, exp_avg_sq, i, n);
    load(g, gradient, i, n);
#pragma unroll
    for (int k = 0; k < kEight; ++k) update(p[k], m[k], v[k], g[k], factors);
    store_own(parameter, p, i, n);
    store_own(exp_avg, m, i, n);
    store_own(exp_avg_sq, v, i, n);
  }
}

}  // namespace satformer::ops::cuda
