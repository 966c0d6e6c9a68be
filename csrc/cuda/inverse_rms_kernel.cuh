// CUDA kernels of inverse_rms (formulas: csrc/ops/depth_weighted_sum.h): a block a row. No torch headers.
#pragma once
#include "csrc/cuda/depth_weighted_sum_launch.h"
#include "csrc/cuda/token_rows.cuh"

namespace satformer::ops::cuda {

template <typename T, int P>
__global__ void __launch_bounds__(kMaxTokenThreads) inverse_rms_kernel(InverseRmsLaunch a) {
  __shared__ float warps[kMaxTokenWarps];
  const T* x = static_cast<const T*>(a.x) + blockIdx.x * a.stride;
  float square = 0.f;
  for (int64_t c = threadIdx.x * P; c < a.d; c += blockDim.x * P) {
    float y[P];
    load_numbers(y, x + c);
#pragma unroll
    for (int p = 0; p < P; ++p) square = fmaf(y[p], y[p], square);
  }
  leave_warp_sum(square, warps, 1);
  __syncthreads();
  if (threadIdx.x == 0) a.inverse[blockIdx.x] = rsqrtf(sum_of_warps(warps, 1) / static_cast<float>(a.d) + a.eps);
}

template <typename T, int P>
__global__ void __launch_bounds__(kMaxTokenThreads) inverse_rms_backward_kernel(InverseRmsLaunch a) {
  const int64_t row = blockIdx.x;
  const float r = a.inverse[row], factor = -a.grad[row] * r * r * r / static_cast<float>(a.d);
  for (int64_t c = threadIdx.x * P; c < a.d; c += blockDim.x * P) {
    float y[P];
    load_numbers(y, static_cast<const T*>(a.x) + row * a.stride + c);
#pragma unroll
    for (int p = 0; p < P; ++p) y[p] *= factor;
    store_numbers(static_cast<T*>(a.grad_x) + row * a.d + c, y);
  }
}

}  // namespace satformer::ops::cuda
