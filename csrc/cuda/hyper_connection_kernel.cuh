// CUDA kernels of the hyper-connections (formulas: csrc/ops/hyper_connection.h). Plain CUDA C++ without torch headers,
// so that nvcc compiles it in seconds and a host harness can run it.
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
__device__ __forceinline__ const T* row_of(const StreamRows& rows, const Sizes& sizes, int64_t token, int64_t i = 0) {
  const int64_t b = token / sizes.T, t = token - b * sizes.T;
  return static_cast<const T*>(rows.data) + b * rows.strides.b + t * rows.strides.t + i * rows.strides.h;
}

// Zeros where the row is not there, so that the arithmetic on N rows needs no branches.
template <int P, typename T>
__device__ __forceinline__ void load_if(bool there, const T* row, float (&x)[P]) {
  if (there) {
    load_numbers(row, x);
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
      load_if(i < n, row_of<T>(a.streams, a.sizes, token, i) + c, h);
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
      load_if(i < n, row_of<T>(a.streams, a.sizes, token, i) + c, x[i]);
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
      load_if(m < products, a.projections + m * d + c, q);
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
      load_if(i < n, row_of<T>(a.streams, a.sizes, token, i) + c, h[i]);
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

// Where a chunk's partial sums begin; the order of `sums` in ops/hyper_connection_checks.h.
struct SumOffsets {
  int64_t logits, scales, alpha, beta, all;
  __host__ __device__ SumOffsets(int64_t n, int64_t d, bool dynamic)
      : logits(dynamic ? (n + 2) * d : 0),
        scales(logits + (dynamic ? n + 2 : 0)),
        alpha(scales + (dynamic ? 2 : 0)),
        beta(alpha + n * (n + 1)),
        all(beta + n) {}
};

// The gradient of M_m.
template <typename T>
__device__ __forceinline__ const T* gradient_row(const HyperConnectionReadBackwardLaunch& r, int64_t token, int m) {
  const Sizes& sizes = r.common.sizes;
  return m == 0 ? row_of<T>(r.grad_input, sizes, token) : row_of<T>(r.grad_mixed, sizes, token, m - 1);
}

// The gradients of A, from which s.alpha, s.to_logit, s.along and s.constant follow; adds to the small partial sums.
// Ends in a barrier.
template <typename T, int N, int P>
__device__ __forceinline__ void find_gradient_coefficients(const HyperConnectionReadBackwardLaunch& r, int64_t token,
                                                           TokenCoefficients<N>& s, float* partial) {
  const HyperConnectionLaunch& a = r.common;
  constexpr int kSums = TokenCoefficients<N>::kSums;
  const int n = static_cast<int>(a.sizes.H), products = n + 2;
  const int64_t d = a.sizes.hd;
  const SumOffsets offsets(n, d, a.projections != nullptr);
  float dot[N][N + 1] = {};
  for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
    float h[N][P];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      load_if(i < n, row_of<T>(a.streams, a.sizes, token, i) + c, h[i]);
    }
#pragma unroll
    for (int m = 0; m <= N; ++m) {
      float g[P];
      load_if(m <= n, gradient_row<T>(r, token, m) + c, g);
#pragma unroll
      for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int p = 0; p < P; ++p) dot[i][m] = fmaf(h[i][p], g[p], dot[i][m]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int m = 0; m <= N; ++m) leave_warp_sum(dot[i][m], &s.warps[0][i * (N + 1) + m], kSums);
  }
  __syncthreads();
  // One thread an A_im or beta_i, always the same one, so that it alone adds to their partial sums.
  for (int e = threadIdx.x; e < n * products; e += blockDim.x) {
    const int i = e / products, m = e - i * products;
    const bool is_beta = m > n;
    const float g = is_beta ? r.grad_beta[token * n + i] : sum_of_warps(&s.warps[0][i * (N + 1) + m], kSums);
    partial[is_beta ? offsets.beta + i : offsets.alpha + i * (n + 1) + m] += g;
    float f = 0.f, scale = 0.f;
    if (a.projections) {
      const float* kept = r.kept + (token * n + i) * (n + 4);
      f = bounded(a, kept[m]);
      scale = is_beta ? *a.beta_scale : *a.alpha_scale;
      s.logit[i][m] = kept[m] - a.offsets[m];
      s.to_logit[i][m] = g * scale * (a.use_tanh ? 1.f - f * f : 1.f);
      s.to_scale[i][m] = g * f;
      if (m == 0) {
        s.inverse[i] = kept[products];
        s.mean[i] = kept[products + 1];
      }
    }
    if (!is_beta) s.alpha[i][m] = fmaf(scale, f, a.static_alpha[i * (n + 1) + m]);
  }
  __syncthreads();
  if (!a.projections) return;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < products) {
    float sum = 0.f;
    for (int i = 0; i < n; ++i) sum += s.to_logit[i][thread];
    partial[offsets.logits + thread] += sum;
  }
  if (thread < 2) {  // alpha_scale, beta_scale
    float sum = 0.f;
    for (int i = 0; i < n; ++i) {
      for (int m = thread == 0 ? 0 : n + 1; m < (thread == 0 ? n + 1 : products); ++m) sum += s.to_scale[i][m];
    }
    partial[offsets.scales + thread] += sum;
  }
  if (thread < n) {
    float along = 0.f, mean = 0.f;
    for (int m = 0; m < products; ++m) {
      along = fmaf(s.to_logit[thread][m], s.logit[thread][m], along);
      mean = fmaf(s.to_logit[thread][m], a.means[m], mean);
    }
    const float inverse = s.inverse[thread];
    s.along[thread] = -inverse * inverse * along / static_cast<float>(d);
    s.constant[thread] = a.layer_norm ? -inverse * mean : 0.f;
  }
  __syncthreads();
}

// One chunk of tokens: the gradients of their streams, and partial sums for the parameters. The sums over the columns
// are kept in shared memory, where a thread owns its columns.
template <typename T, int N, int P>
__global__ void __launch_bounds__(kMaxTokenThreads, 1)  // registers rather than blocks: N 8 would spill a little
    read_backward_kernel(HyperConnectionReadBackwardLaunch r, TokenChunks chunks) {
  __shared__ TokenCoefficients<N> s;
  extern __shared__ float memory[];  // [n+2, d]
  float* column_sums = memory;
  const HyperConnectionLaunch& a = r.common;
  const int n = static_cast<int>(a.sizes.H), products = a.projections ? n + 2 : 0;
  const int64_t d = a.sizes.hd;
  const SumOffsets offsets(n, d, a.projections != nullptr);
  float* partial = r.partials + blockIdx.x * offsets.all;
  for (int64_t e = threadIdx.x; e < offsets.logits; e += blockDim.x) column_sums[e] = 0.f;
  for (int64_t e = offsets.logits + threadIdx.x; e < offsets.all; e += blockDim.x) partial[e] = 0.f;
  clear(s);
  for (int64_t token = chunks.begin(); token < chunks.end(); ++token) {
    find_gradient_coefficients<T, N, P>(r, token, s, partial);
    T* out = static_cast<T*>(r.grad_streams) + token * n * d;
    for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
      float x[N][P], sum[N][P];
#pragma unroll
      for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int p = 0; p < P; ++p) x[i][p] = sum[i][p] = 0.f;
        if (i >= n || products == 0) continue;
        load_numbers(row_of<T>(a.streams, a.sizes, token, i) + c, x[i]);
#pragma unroll
        for (int p = 0; p < P; ++p) {
          x[i][p] -= s.mean[i];
          sum[i][p] = fmaf(s.along[i], x[i][p], s.constant[i]);
          x[i][p] *= s.inverse[i];
        }
      }
#pragma unroll 1
      for (int m = 0; m <= n; ++m) {
        float g[P];
        load_numbers(gradient_row<T>(r, token, m) + c, g);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float factor = s.alpha[i][m];
#pragma unroll
          for (int p = 0; p < P; ++p) sum[i][p] = fmaf(factor, g[p], sum[i][p]);
        }
      }
#pragma unroll 1
      for (int m = 0; m < products; ++m) {
        float q[P], over_streams[P] = {};
        load_numbers(a.projections + m * d + c, q);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const float g = s.to_logit[i][m], scaled = g * s.inverse[i];
#pragma unroll
          for (int p = 0; p < P; ++p) {
            sum[i][p] = fmaf(scaled, q[p], sum[i][p]);
            over_streams[p] = fmaf(g, x[i][p], over_streams[p]);
          }
        }
#pragma unroll
        for (int p = 0; p < P; ++p) column_sums[m * d + c + p] += over_streams[p];
      }
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (i < n) store_numbers(out + i * d + c, sum[i]);
      }
    }
    __syncthreads();  // s is written anew
  }
  for (int64_t e = threadIdx.x; e < offsets.logits; e += blockDim.x) partial[e] = column_sums[e];
}

// Hs' = mixed + beta (x) out; result may be mixed.
template <typename T, int P>
__global__ void __launch_bounds__(kMaxTokenThreads) write_kernel(HyperConnectionWriteLaunch a) {
  const int64_t token = blockIdx.x, n = a.sizes.H, b = token / a.sizes.T, t = token - b * a.sizes.T;
  const T* out = row_of<T>(a.out, a.sizes, token);
  T* result = static_cast<T*>(a.result) + b * a.result_strides.b + t * a.result_strides.t;
  for (int64_t c = threadIdx.x * P; c < a.sizes.hd; c += blockDim.x * P) {
    float y[P];
    load_numbers(out + c, y);
    for (int64_t i = 0; i < n; ++i) {
      const float factor = a.beta[token * n + i];
      float x[P];
      load_numbers(row_of<T>(a.mixed, a.sizes, token, i) + c, x);
#pragma unroll
      for (int p = 0; p < P; ++p) x[p] = fmaf(factor, y[p], x[p]);
      store_numbers(result + i * a.result_strides.h + c, x);
    }
  }
}

template <typename T, int N, int P>
__global__ void __launch_bounds__(kMaxTokenThreads) write_backward_kernel(HyperConnectionWriteBackwardLaunch a) {
  __shared__ float warps[kMaxTokenWarps][N];
  const int n = static_cast<int>(a.sizes.H);
  const int64_t token = blockIdx.x, d = a.sizes.hd;
  const T* out = row_of<T>(a.out, a.sizes, token);
  float dot[N] = {};
  for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
    float y[P], sum[P] = {};
    load_numbers(out + c, y);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float factor = i < n ? a.beta[token * n + i] : 0.f;
      float g[P];
      load_if(i < n, row_of<T>(a.grad, a.sizes, token, i) + c, g);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        dot[i] = fmaf(g[p], y[p], dot[i]);
        sum[p] = fmaf(factor, g[p], sum[p]);
      }
    }
    store_numbers(static_cast<T*>(a.grad_out) + token * d + c, sum);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) leave_warp_sum(dot[i], &warps[0][i], N);
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < n) a.grad_beta[token * n + threadIdx.x] = sum_of_warps(&warps[0][threadIdx.x], N);
}

}  // namespace satformer::ops::cuda
