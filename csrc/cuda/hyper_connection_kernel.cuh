// The forward CUDA kernels of the hyper-connections (formulas: csrc/ops/hyper_connection.h). Plain CUDA C++ without
// torch headers, so that nvcc compiles it in seconds and a host harness can run it.
//
// A block takes one token at a time. Its n rows are read twice, the second time from cache: first for the products with
// the projections (or with the gradients), then for the mixes. N bounds n at compile time, so that all n (n + 2) sums
// of a thread are registers; P is the number of neighbouring columns that a thread reads at once.
#pragma once
#include <cstdint>

#include "csrc/cuda/hyper_connection_launch.h"
#include "csrc/cuda/token_rows.cuh"

namespace satformer::ops::cuda {

template <typename T>
__device__ __forceinline__ const T* row_of(const Source& rows, const Sizes& sizes, int64_t token, int64_t i = 0) {
  const int64_t b = token / sizes.T, t = token - b * sizes.T;
  return static_cast<const T*>(rows.data) + b * rows.strides.b + t * rows.strides.t + i * rows.strides.h;
}

// Zeros where the row is not there, so that the arithmetic on N rows needs no branches.
template <int P, typename T>
__device__ __forceinline__ void load_if(bool there, float (&x)[P], const T* row) {
  if (there) {
    load_numbers(x, row);
  } else {
#pragma unroll
    for (int p = 0; p < P; ++p) x[p] = 0.f;
  }
}

// What the block knows of its token, in shared memory; zeros past n.
template <int N>
struct TokenCoefficients {
  static constexpr int kSums = N * (N + 2) + N;
  float alpha[N][N + 1];  // A
  float mean[N];          // 0 with RMSNorm
  // Backward: logits without offsets, their gradients, the terms of the scales' gradients; d h_i has
  // along_i x_i + constant_i.
  float logit[N][N + 2], to_logit[N][N + 2], to_scale[N][N + 2], inverse[N], along[N], constant[N];
  float warps[kMaxTokenWarps][kSums];
};

// Ends in a barrier.
template <int N>
__device__ __forceinline__ void clear(TokenCoefficients<N>& s) {
  float* first = reinterpret_cast<float*>(&s);
  constexpr int kCount = (sizeof(s) - sizeof(s.warps)) / sizeof(float);  // warps stands last
  for (int e = threadIdx.x; e < kCount; e += blockDim.x) first[e] = 0.f;
  __syncthreads();
}

__device__ __forceinline__ float bounded(const HyperConnectionLaunch& a, float logit) {
  return a.use_tanh ? tanhf(logit) : logit;
}

// coefficients.mean[i] of the token's rows; ends in a barrier.
template <typename T, int N, int P>
__device__ __forceinline__ void find_means(const HyperConnectionLaunch& a, int64_t token, TokenCoefficients<N>& s) {
  const int n = static_cast<int>(a.sizes.H);
  float sum[N] = {};
  for (int64_t c = threadIdx.x * P; c < a.sizes.hd; c += blockDim.x * P) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float h[P];
      load_if(i < n, h, row_of<T>(a.streams, a.sizes, token, i) + c);
#pragma unroll
      for (int p = 0; p < P; ++p) sum[i] += h[p];
    }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) leave_warp_sum(sum[i], &s.warps[0][i], TokenCoefficients<N>::kSums);
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < n) {
    s.mean[threadIdx.x] =
        sum_of_warps(&s.warps[0][threadIdx.x], TokenCoefficients<N>::kSums) / static_cast<float>(a.sizes.hd);
  }
  __syncthreads();
}

// Logits, norms and coefficients of a token; ends in a barrier.
template <typename T, int N, int P>
__device__ __forceinline__ void find_coefficients(const HyperConnectionReadLaunch& r, int64_t token,
                                                  TokenCoefficients<N>& s) {
  const HyperConnectionLaunch& a = r.common;
  constexpr int K = N + 2, kSums = TokenCoefficients<N>::kSums;
  const int n = static_cast<int>(a.sizes.H), products = n + 2;
  const int64_t d = a.sizes.hd;
  float dot[N][K] = {}, square[N] = {};
  for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
    float x[N][P];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      load_if(i < n, x[i], row_of<T>(a.streams, a.sizes, token, i) + c);
      const float mean = a.layer_norm && i < n ? s.mean[i] : 0.f;
#pragma unroll
      for (int p = 0; p < P; ++p) {
        x[i][p] -= mean;
        square[i] = fmaf(x[i][p], x[i][p], square[i]);
      }
    }
#pragma unroll
    for (int m = 0; m < K; ++m) {
      float q[P];
      load_if(m < products, q, a.projections + m * d + c);
#pragma unroll
      for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int p = 0; p < P; ++p) dot[i][m] = fmaf(x[i][p], q[p], dot[i][m]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int m = 0; m < K; ++m) leave_warp_sum(dot[i][m], &s.warps[0][i * K + m], kSums);
    leave_warp_sum(square[i], &s.warps[0][N * K + i], kSums);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < n * products; e += blockDim.x) {
    const int i = e / products, m = e - i * products;
    const float mean_square = sum_of_warps(&s.warps[0][N * K + i], kSums) / static_cast<float>(d);
    const float inverse = rsqrtf(mean_square + a.norm_eps);
    const float logit = fmaf(inverse, sum_of_warps(&s.warps[0][i * K + m], kSums), a.offsets[m]);
    float* kept = r.kept + (token * n + i) * (n + 4);
    kept[m] = logit;
    if (m == 0) {
      kept[products] = inverse;
      kept[products + 1] = a.layer_norm ? s.mean[i] : 0.f;
    }
    if (m <= n) {
      s.alpha[i][m] = fmaf(*a.alpha_scale, bounded(a, logit), a.static_alpha[i * (n + 1) + m]);
    } else {
      r.beta[token * n + i] = fmaf(*a.beta_scale, bounded(a, logit), a.static_beta[i]);
    }
  }
  __syncthreads();
}

template <typename T, int N, int P>
__global__ void __launch_bounds__(kMaxTokenThreads) read_kernel(HyperConnectionReadLaunch r) {
  __shared__ TokenCoefficients<N> s;
  const HyperConnectionLaunch& a = r.common;
  const int n = static_cast<int>(a.sizes.H);
  const int64_t d = a.sizes.hd, token = blockIdx.x;
  clear(s);
  if (a.projections) {
    if (a.layer_norm) find_means<T, N, P>(a, token, s);
    find_coefficients<T, N, P>(r, token, s);
  } else {
    for (int e = threadIdx.x; e < n * (n + 1); e += blockDim.x) s.alpha[e / (n + 1)][e % (n + 1)] = a.static_alpha[e];
    if (static_cast<int>(threadIdx.x) < n) r.beta[token * n + threadIdx.x] = a.static_beta[threadIdx.x];
    __syncthreads();
  }
  T *input = static_cast<T*>(r.input) + token * d, *mixed = static_cast<T*>(r.mixed) + token * n * d;
  for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
    float h[N][P];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      load_if(i < n, h[i], row_of<T>(a.streams, a.sizes, token, i) + c);
    }
#pragma unroll
    for (int m = 0; m <= N; ++m) {
      float sum[P] = {};
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float factor = s.alpha[i][m];
#pragma unroll
        for (int p = 0; p < P; ++p) sum[p] = fmaf(factor, h[i][p], sum[p]);
      }
      if (m <= n) store_numbers((m == 0 ? input : mixed + (m - 1) * d) + c, sum);
    }
  }
}

// Hs' = mixed + beta (x) out; result may be mixed.
template <typename T, int P>
__global__ void __launch_bounds__(kMaxTokenThreads) write_kernel(HyperConnectionWriteLaunch a) {
  const int64_t token = blockIdx.x, n = a.sizes.H, b = token / a.sizes.T, t = token - b * a.sizes.T;
  const T* out = row_of<T>(a.out, a.sizes, token);
  T* result = static_cast<T*>(a.result) + b * a.result_strides.b + t * a.result_strides.t;
  for (int64_t c = threadIdx.x * P; c < a.sizes.hd; c += blockDim.x * P) {
    float y[P];
    load_numbers(y, out + c);
    for (int64_t i = 0; i < n; ++i) {
      const float factor = a.beta[token * n + i];
      float x[P];
      load_numbers(x, row_of<T>(a.mixed, a.sizes, token, i) + c);
#pragma unroll
      for (int p = 0; p < P; ++p) x[p] = fmaf(factor, y[p], x[p]);
      store_numbers(result + i * a.result_strides.h + c, x);
    }
  }
}

}  // namespace satformer::ops::cuda
