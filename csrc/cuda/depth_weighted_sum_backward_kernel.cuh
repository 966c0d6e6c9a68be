// The backward CUDA kernels of depth_weighted_sum (formulas: csrc/ops/depth_weighted_sum_reference.cpp). As in the
// forward kernel a block takes one token at a time; norm weights, whose gradients are sums over the tokens, have a
// kernel of their own in which a warp owns a tile of columns. Sums over chunks of tokens are added in order by
// sum_chunks_kernel.
#pragma once
#include "csrc/cuda/depth_weighted_sum_kernel.cuh"

namespace satformer::ops::cuda {

// The gradients of the sums, G_c = r p grad - s r^3 mean(s p grad), for one token into gradients[c * d + column];
// statistics: r and r^3 mean(..). Without output norms the incoming gradients. W >= ways. Ends in a barrier.
template <typename T, int W, int P>
__device__ __forceinline__ void load_gradients(const DepthSumLaunch& a, const DepthSumBackwardLaunch& out,
                                               int64_t token, const float* factors, float (*warps)[2 * W],
                                               float* gradients) {
  const int64_t b = token / a.T, t = token - b * a.T, d = a.d;
  float square[W] = {}, along[W] = {};
  for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
    float sum[W][P] = {}, to_base[P] = {};
    if (a.output_norms) sum_sources<T>(a, 0, b, t, c, factors, sum);
#pragma unroll
    for (int w = 0; w < W; ++w) {
      if (w >= a.ways) break;
      float grad[P], weight[P] = {};
      load_numbers(grad, row_of<T>(out.grads[w], b, t) + c);
      if (a.output_norms) load_numbers(weight, a.output_norm_weights[w] + c);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        to_base[p] += grad[p];
        if (a.output_norms) {
          square[w] = fmaf(sum[w][p], sum[w][p], square[w]);
          along[w] = fmaf(sum[w][p], weight[p] * grad[p], along[w]);
          grad[p] = sum[w][p];  // for now
        }
        gradients[w * d + c + p] = grad[p];
      }
    }
    if (out.base) store_numbers(static_cast<T*>(out.base) + token * d + c, to_base);
  }
  if (a.output_norms) {
#pragma unroll
    for (int w = 0; w < W; ++w) {
      leave_warp_sum(square[w], &warps[0][2 * w], 2 * W);
      leave_warp_sum(along[w], &warps[0][2 * w + 1], 2 * W);
    }
    __syncthreads();
#pragma unroll 1
    for (int w = 0; w < a.ways; ++w) {
      const float size = static_cast<float>(d);
      const float r = rsqrtf(sum_of_warps(&warps[0][2 * w], 2 * W) / size + a.output_norm_eps);
      const float slope = r * r * r * sum_of_warps(&warps[0][2 * w + 1], 2 * W) / size;
      if (threadIdx.x == 0 && out.output_statistics) {
        out.output_statistics[(token * a.ways + w) * 2] = r;
        out.output_statistics[(token * a.ways + w) * 2 + 1] = slope;
      }
      for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
        float grad[P], weight[P];
        load_numbers(grad, row_of<T>(out.grads[w], b, t) + c);
        load_numbers(weight, a.output_norm_weights[w] + c);
#pragma unroll
        for (int p = 0; p < P; ++p) {
          float& g = gradients[w * d + c + p];
          g = r * weight[p] * grad[p] - slope * g;
        }
      }
    }
  }
  __syncthreads();
}

// For a chunk of tokens: gradients of the base, of the sources and of r_j; of the weights for each token, or summed
// over the chunk. W >= ways. Dynamic shared memory: [ways, d] gradients, [kMaxTokenWarps, sources, W] products of the
// warps.
template <typename T, int W, int P>
__global__ void __launch_bounds__(kMaxTokenThreads, 1)  // else ptxas spills 8 bytes to keep to 40 registers
    depth_sum_backward_kernel(DepthSumLaunch a, DepthSumBackwardLaunch out, TokenChunks chunks) {
  extern __shared__ float memory[];
  __shared__ float factors[W * kMaxSources], weight_sums[W * kMaxSources], warps[kMaxTokenWarps][2 * W];
  float *gradients = memory, *products = memory + a.ways * a.d;
  const int S = a.sources, stride = S * W;
  const bool with_products = out.weights || out.inverse_rms;
  for (int e = threadIdx.x; e < a.ways * S; e += blockDim.x) weight_sums[e] = 0.f;
  for (int64_t token = chunks.begin(); token < chunks.end(); ++token) {
    const int64_t b = token / a.T, t = token - b * a.T, d = a.d;
    load_factors<W>(a, token, factors);
    __syncthreads();
    load_gradients<T, W, P>(a, out, token, factors, warps, gradients);
#pragma unroll 1
    for (int j = 0; j < S; ++j) {
      float product[W] = {};
      for (int64_t c = threadIdx.x * P; c < d; c += blockDim.x * P) {
        float y[P], q[P] = {};
        load_source<T>(a, j, b, t, c, y);
#pragma unroll
        for (int w = 0; w < W; ++w) {
          const float factor = factors[w * S + j];
#pragma unroll
          for (int p = 0; p < P; ++p) {
            const float g = w < a.ways ? gradients[w * d + c + p] : 0.f;
            product[w] = fmaf(g, y[p], product[w]);
            q[p] = fmaf(factor, g, q[p]);
          }
        }
        if (!out.writes_sources) continue;
        T* to = static_cast<T*>(out.sources[j].data) + b * out.sources[j].stride_b + t * out.sources[j].stride_t + c;
        float before[P] = {}, weight[P] = {};
        if (out.add_to_sources) load_numbers(before, static_cast<const T*>(to));
        if (a.source_norms) load_numbers(weight, a.norm_weights[j] + c);
#pragma unroll
        for (int p = 0; p < P; ++p) q[p] = fmaf(a.source_norms ? weight[p] : 1.f, q[p], before[p]);
        store_numbers(to, q);
      }
      if (!with_products) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) leave_warp_sum(product[w], products + j * W + w, stride);
    }
    __syncthreads();
    if (with_products) {
      for (int j = threadIdx.x; j < S; j += blockDim.x) {
        const float r = inverse_of(a, token, j);
        float to_inverse = 0.f;
        for (int w = 0; w < a.ways; ++w) {
          const float product = sum_of_warps(products + j * W + w, stride);
          to_inverse = fmaf(weight_of(a, token, w, j), product, to_inverse);
          if (a.weights_per_token) {
            if (out.weights) out.weights[(token * a.ways + w) * S + j] = r * product;
          } else {
            weight_sums[w * S + j] = fmaf(r, product, weight_sums[w * S + j]);
          }
        }
        if (out.inverse_rms) out.inverse_rms[j * a.B * a.T + token] = to_inverse;
      }
    }
    __syncthreads();  // shared memory is written anew
  }
  if (out.weights && !a.weights_per_token) {
    for (int e = threadIdx.x; e < a.ways * S; e += blockDim.x) {
      out.weight_partials[blockIdx.x * a.ways * S + e] = weight_sums[e];
    }
  }
}

// Partial sums of d g_j = r_j x_j sum_c w_cj G_c and d p_c = grad r s. A block is one warp with a tile of 32 P columns
// (blockIdx.y) of a chunk of tokens (blockIdx.x); a thread owns its columns in all of [sources + ways, 32 P] dynamic
// shared memory, so that there are no barriers. W >= ways.
template <typename T, int W, int P>
__global__ void __launch_bounds__(32)
    depth_norm_weights_kernel(DepthSumLaunch a, DepthSumBackwardLaunch out, TokenChunks chunks) {
  extern __shared__ float memory[];
  constexpr int kTile = 32 * P;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.x * P, d = a.d;
  if (column >= d) return;
  float* own = memory + threadIdx.x * P;
  const int rows = a.sources + a.ways;
  for (int row = 0; row < rows; ++row) {
#pragma unroll
    for (int p = 0; p < P; ++p) own[row * kTile + p] = 0.f;
  }
  for (int64_t token = chunks.begin(); token < chunks.end(); ++token) {
    const int64_t b = token / a.T, t = token - b * a.T;
    float G[W][P] = {}, s[W][P] = {};
    if (a.output_norms) {
#pragma unroll 1
      for (int j = 0; j < a.sources; ++j) {
        float y[P];
        load_source<T>(a, j, b, t, column, y);
        const float r = inverse_of(a, token, j);
#pragma unroll
        for (int w = 0; w < W; ++w) {
          const float factor = w < a.ways ? weight_of(a, token, w, j) * r : 0.f;
#pragma unroll
          for (int p = 0; p < P; ++p) s[w][p] = fmaf(factor, y[p], s[w][p]);
        }
      }
    }
#pragma unroll
    for (int w = 0; w < W; ++w) {
      if (w >= a.ways) break;
      load_numbers(G[w], row_of<T>(out.grads[w], b, t) + column);
      if (!a.output_norms) continue;
      const float r = out.output_statistics[(token * a.ways + w) * 2];
      const float slope = out.output_statistics[(token * a.ways + w) * 2 + 1];
      float weight[P];
      load_numbers(weight, a.output_norm_weights[w] + column);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        own[(a.sources + w) * kTile + p] += G[w][p] * r * s[w][p];
        G[w][p] = r * weight[p] * G[w][p] - slope * s[w][p];
      }
    }
    if (!a.source_norms) continue;
#pragma unroll 1
    for (int j = 0; j < a.sources; ++j) {
      float x[P], q[P] = {};
      load_numbers(x, row_of<T>(a.source[j], b, t) + column);
      const float r = inverse_of(a, token, j);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float factor = w < a.ways ? weight_of(a, token, w, j) * r : 0.f;
#pragma unroll
        for (int p = 0; p < P; ++p) q[p] = fmaf(factor, G[w][p], q[p]);
      }
#pragma unroll
      for (int p = 0; p < P; ++p) own[j * kTile + p] = fmaf(x[p], q[p], own[j * kTile + p]);
    }
  }
  for (int row = 0; row < rows; ++row) {
#pragma unroll
    for (int p = 0; p < P; ++p) {
      out.norm_partials[(static_cast<int64_t>(blockIdx.x) * rows + row) * d + column + p] = own[row * kTile + p];
    }
  }
}

}  // namespace satformer::ops::cuda
