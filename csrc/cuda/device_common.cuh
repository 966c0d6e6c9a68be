// Arithmetic that the CUDA kernels share: the sigmoid, reductions within a warp. No torch headers.
#pragma once
#include <cuda_runtime.h>

namespace satformer::ops::cuda {

constexpr unsigned kFullMask = 0xffffffffu;
constexpr int kWarp = 32;

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// Sum and maximum over the `lanes` neighbouring threads that share a row; every one of them gets the result.
__device__ __forceinline__ float lanes_sum(float x, int lanes) {
  for (int offset = lanes >> 1; offset > 0; offset >>= 1) x += __shfl_xor_sync(kFullMask, x, offset);
  return x;
}
__device__ __forceinline__ float lanes_max(float x, int lanes) {
  for (int offset = lanes >> 1; offset > 0; offset >>= 1) {
    const float other = __shfl_xor_sync(kFullMask, x, offset);
    x = other > x || other != other ? other : x;  // NaN wins
  }
  return x;
}

}  // namespace satformer::ops::cuda
