// What the kernels that give a block to each token share: sums over the block, the threads for a row, chunks of tokens.
// No torch headers.
#pragma once
#include <cstdint>

#include "csrc/cuda/device_common.cuh"
#include "csrc/cuda/vector_io.cuh"

namespace satformer::ops::cuda {

constexpr int kMaxTokenThreads = 256;
constexpr int kMaxTokenWarps = kMaxTokenThreads / kWarp;

// The first lane of each warp leaves the warp's sum of x in sums[warp * stride]. Every thread of the block must call
// it.
__device__ __forceinline__ void leave_warp_sum(float x, float* sums, int stride) {
  x = lanes_sum(x, 32);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32 * stride] = x;
}

// After a barrier: the sum over the warps.
__device__ __forceinline__ float sum_of_warps(const float* sums, int stride) {
  float total = 0.f;
  for (int warp = 0; warp < static_cast<int>(blockDim.x / 32); ++warp) total += sums[warp * stride];
  return total;
}

// Threads for a row of d numbers, P at a time: whole warps, at most kMaxTokenThreads.
inline unsigned threads_for_row(int64_t d, int64_t pack) {
  const int64_t warps = (d + 32 * pack - 1) / (32 * pack);
  return static_cast<unsigned>(32 * (warps < 1 ? 1 : warps > kMaxTokenWarps ? kMaxTokenWarps : warps));
}

// Tokens are summed in this many chunks at most, one block each, whatever the device: the same bits everywhere.
constexpr int64_t kMaxChunks = 512;
struct TokenChunks {
  int64_t tokens, size;
  __host__ __device__ int64_t count() const { return (tokens + size - 1) / size; }
  __device__ int64_t begin() const { return blockIdx.x * size; }
  __device__ int64_t end() const {
    const int64_t last = begin() + size;
    return last < tokens ? last : tokens;
  }
};
inline TokenChunks chunks_of(int64_t tokens) {
  const int64_t size = (tokens + kMaxChunks - 1) / kMaxChunks;
  return {tokens, size < 1 ? 1 : size};
}

// out[i] = the sum over the chunks of partials[chunk * stride + i], in their order.
static __global__ void __launch_bounds__(kMaxTokenThreads)
    sum_chunks_kernel(float* out, const float* partials, int64_t chunks, int64_t stride, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float total = 0.f;
#pragma unroll 8
  for (int64_t chunk = 0; chunk < chunks; ++chunk) total += partials[chunk * stride + i];
  out[i] = total;
}

}  // namespace satformer::ops::cuda
