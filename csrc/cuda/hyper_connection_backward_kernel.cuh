// The backward CUDA kernels of the hyper-connections (formulas: csrc/ops/hyper_connection_reference.cpp). As in the
// forward kernels a block takes one token at a time; in the read's backward it goes on through a chunk of tokens and
// adds up the parameters' gradients, which sum_chunks_kernel adds in the order of the chunks.
#pragma once
#include "csrc/cuda/hyper_connection_kernel.cuh"

namespace satformer::ops::cuda {

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

// The warps' sums of h_i . grad M_m, the gradients of A, in s.warps.
template <typename T, int N, int P>
__device__ __forceinline__ void leave_products(const HyperConnectionReadBackwardLaunch& r, int64_t token,
                                               TokenCoefficients<N>& s) {
  const HyperConnectionLaunch& a = r.common;
  constexpr int kSums = TokenCoefficients<N>::kSums;
  const int n = static_cast<int>(a.sizes.H);
  const int64_t d = a.sizes.hd;
  float dot[N][N + 1] = {};
  for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
    float h[N][P];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      load_if(i < n, h[i], row_of<T>(a.streams, a.sizes, token, i) + c);
    }
#pragma unroll
    for (int m = 0; m <= N; ++m) {
      float g[P];
      load_if(m <= n, g, gradient_row<T>(r, token, m) + c);
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
}

// From these s.alpha, s.logit, s.to_logit, s.to_scale, s.inverse and s.mean; adds to the partial sums of A and beta.
template <int N>
__device__ __forceinline__ void find_logit_gradients(const HyperConnectionReadBackwardLaunch& r, int64_t token,
                                                     TokenCoefficients<N>& s, const SumOffsets& offsets,
                                                     float* partial) {
  const HyperConnectionLaunch& a = r.common;
  constexpr int kSums = TokenCoefficients<N>::kSums;
  const int n = static_cast<int>(a.sizes.H), products = n + 2;
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
}

// From the logits' gradients s.along and s.constant; adds to the partial sums of the offsets and scales.
template <int N>
__device__ __forceinline__ void find_norm_gradients(const HyperConnectionLaunch& a, TokenCoefficients<N>& s,
                                                    const SumOffsets& offsets, float* partial) {
  const int n = static_cast<int>(a.sizes.H), products = n + 2;
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
    s.along[thread] = -inverse * inverse * along / static_cast<float>(a.sizes.hd);
    s.constant[thread] = a.layer_norm ? -inverse * mean : 0.f;
  }
}

// All that a token's columns need of the gradients of its coefficients. Ends in a barrier.
template <typename T, int N, int P>
__device__ __forceinline__ void find_gradient_coefficients(const HyperConnectionReadBackwardLaunch& r, int64_t token,
                                                           TokenCoefficients<N>& s, const SumOffsets& offsets,
                                                           float* partial) {
  leave_products<T, N, P>(r, token, s);
  __syncthreads();
  find_logit_gradients(r, token, s, offsets, partial);
  __syncthreads();
  if (!r.common.projections) return;
  find_norm_gradients(r.common, s, offsets, partial);
  __syncthreads();
}

// The gradients of the streams' columns from c on, and what these columns add to the projections' sums.
template <typename T, int N, int P>
__device__ __forceinline__ void put_columns(const HyperConnectionReadBackwardLaunch& r, int64_t token,
                                            const TokenCoefficients<N>& s, int64_t c, float* column_sums) {
  const HyperConnectionLaunch& a = r.common;
  const int n = static_cast<int>(a.sizes.H), products = a.projections ? n + 2 : 0;
  const int64_t d = a.sizes.hd;
  T* out = static_cast<T*>(r.grad_streams) + token * n * d;
  float x[N][P], sum[N][P];
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int p = 0; p < P; ++p) x[i][p] = sum[i][p] = 0.f;
    if (i >= n || products == 0) continue;
    load_numbers(x[i], row_of<T>(a.streams, a.sizes, token, i) + c);
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
    load_numbers(g, gradient_row<T>(r, token, m) + c);
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
    load_numbers(q, a.projections + m * d + c);
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

// One chunk of tokens: the gradients of their streams, and partial sums for the parameters. The sums over the columns
// are kept in shared memory, where a thread owns its columns.
template <typename T, int N, int P>
__global__ void __launch_bounds__(kMaxTokenThreads, 1)  // registers rather than blocks: N 8 would spill a little
    read_backward_kernel(HyperConnectionReadBackwardLaunch r, TokenChunks chunks) {
  __shared__ TokenCoefficients<N> s;
  extern __shared__ float memory[];  // [n+2, d]
  float* column_sums = memory;
  const HyperConnectionLaunch& a = r.common;
  const int64_t d = a.sizes.hd;
  const SumOffsets offsets(a.sizes.H, d, a.projections != nullptr);
  float* partial = r.partials + blockIdx.x * offsets.all;
  for (int64_t e = threadIdx.x; e < offsets.logits; e += blockDim.x) column_sums[e] = 0.f;
  for (int64_t e = offsets.logits + threadIdx.x; e < offsets.all; e += blockDim.x) partial[e] = 0.f;
  clear(s);
  for (int64_t token = chunks.begin(); token < chunks.end(); ++token) {
    find_gradient_coefficients<T, N, P>(r, token, s, offsets, partial);
    for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
      put_columns<T, N, P>(r, token, s, c, column_sums);
    }
    __syncthreads();  // s is written anew
  }
  for (int64_t e = threadIdx.x; e < offsets.logits; e += blockDim.x) partial[e] = column_sums[e];
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
    load_numbers(y, out + c);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float factor = i < n ? a.beta[token * n + i] : 0.f;
      float g[P];
      load_if(i < n, g, row_of<T>(a.grad, a.sizes, token, i) + c);
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
