// The forward CUDA kernel of depth_weighted_sum (formulas: csrc/ops/depth_weighted_sum.h). Plain CUDA C++ without torch
// headers, so that nvcc compiles it in seconds and a host harness can run it.
//
// A block takes one token at a time: a thread owns columns, P neighbouring ones at once, and reads each source once for
// up to W ways. With an output norm the sums wait in shared memory for their mean squares.
#pragma once
#include <cstdint>

#include "csrc/cuda/depth_weighted_sum_launch.h"
#include "csrc/cuda/token_rows.cuh"

namespace satformer::ops::cuda {

template <typename T>
__device__ __forceinline__ const T* row_of(const ReadRows& rows, int64_t b, int64_t t) {
  return static_cast<const T*>(rows.data) + b * rows.stride_b + t * rows.stride_t;
}

__device__ __forceinline__ float weight_of(const DepthSumLaunch& a, int64_t token, int c, int j) {
  return a.weights[(a.weights_per_token ? token * a.ways * a.sources : 0) + c * a.sources + j];
}
__device__ __forceinline__ float inverse_of(const DepthSumLaunch& a, int64_t token, int j) {
  return a.source_norms ? a.inverse_rms[j][token] : 1.f;
}

// y = g_j x_j, or x_j without source norms.
template <typename T, int P>
__device__ __forceinline__ void load_source(const DepthSumLaunch& a, int j, int64_t b, int64_t t, int64_t c,
                                            float (&y)[P]) {
  load_numbers(y, row_of<T>(a.source[j], b, t) + c);
  if (a.source_norms) {
    float g[P];
    load_numbers(g, a.norm_weights[j] + c);
#pragma unroll
    for (int p = 0; p < P; ++p) y[p] *= g[p];
  }
}

// factors[c * sources + j] = w_cj r_j of the token; zeros past the last way up to a multiple of W, so that the
// arithmetic on W ways needs no branches. The caller needs a barrier before reading.
template <int W>
__device__ __forceinline__ void load_factors(const DepthSumLaunch& a, int64_t token, float* factors) {
  for (int e = threadIdx.x; e < (a.ways + W - 1) / W * W * a.sources; e += blockDim.x) {
    const int c = e / a.sources, j = e - c * a.sources;
    factors[e] = c < a.ways ? weight_of(a, token, c, j) * inverse_of(a, token, j) : 0.f;
  }
}

// sum[w] = sum over j of factors[(first + w) * sources + j] y_j, for the ways from `first` on.
template <typename T, int W, int P>
__device__ __forceinline__ void sum_sources(const DepthSumLaunch& a, int first, int64_t b, int64_t t, int64_t c,
                                            const float* factors, float (&sum)[W][P]) {
#pragma unroll
  for (int w = 0; w < W; ++w) {
#pragma unroll
    for (int p = 0; p < P; ++p) sum[w][p] = 0.f;
  }
#pragma unroll 2
  for (int j = 0; j < a.sources; ++j) {
    float y[P];
    load_source<T>(a, j, b, t, c, y);
#pragma unroll
    for (int w = 0; w < W; ++w) {
      const float factor = factors[(first + w) * a.sources + j];
#pragma unroll
      for (int p = 0; p < P; ++p) sum[w][p] = fmaf(factor, y[p], sum[w][p]);
    }
  }
}

// Dynamic shared memory: with output norms W rows of d sums.
template <typename T, int W, int P>
__global__ void __launch_bounds__(kMaxTokenThreads) depth_sum_kernel(DepthSumLaunch a, DepthSumOutputsLaunch out) {
  extern __shared__ float memory[];
  float* sums = memory;
  __shared__ float factors[kMaxWays * kMaxSources], squares[kMaxTokenWarps][W];
  const int64_t token = blockIdx.x, b = token / a.T, t = token - b * a.T, d = a.d;
  load_factors<W>(a, token, factors);
  __syncthreads();
  for (int first = 0; first < a.ways; first += W) {
    float square[W] = {};
    for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
      float sum[W][P] = {}, base[P] = {};
      sum_sources<T>(a, first, b, t, c, factors, sum);
      if (a.base.data && !a.output_norms) load_numbers(base, row_of<T>(a.base, b, t) + c);
#pragma unroll
      for (int w = 0; w < W; ++w) {
#pragma unroll
        for (int p = 0; p < P; ++p) {
          square[w] = fmaf(sum[w][p], sum[w][p], square[w]);
          if (a.output_norms) sums[w * d + c + p] = sum[w][p];
          sum[w][p] += base[p];
        }
        if (!a.output_norms && first + w < a.ways)
          store_numbers(static_cast<T*>(out.out[first + w]) + token * d + c, sum[w]);
      }
    }
    if (!a.output_norms) continue;
#pragma unroll
    for (int w = 0; w < W; ++w) leave_warp_sum(square[w], &squares[0][w], W);
    __syncthreads();
    for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
      float base[P] = {};
      if (a.base.data) load_numbers(base, row_of<T>(a.base, b, t) + c);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        if (first + w >= a.ways) break;
        const float r = rsqrtf(sum_of_warps(&squares[0][w], W) / static_cast<float>(d) + a.output_norm_eps);
        float weight[P], result[P];
        load_numbers(weight, a.output_norm_weights[first + w] + c);
#pragma unroll
        for (int p = 0; p < P; ++p) result[p] = fmaf(sums[w * d + c + p] * r, weight[p], base[p]);
        store_numbers(static_cast<T*>(out.out[first + w]) + token * d + c, result);
      }
    }
    __syncthreads();  // squares are written anew
  }
}

}  // namespace satformer::ops::cuda
