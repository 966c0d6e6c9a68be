// Matrices of rows in kernels: a thread takes eight numbers at a time, as float32 in registers, in one or two
// instructions of 16 bytes where the row allows it; and the threads that share a row add up what they have. No torch
// headers.
#pragma once
#include <cstdint>

#include "csrc/cuda/device_common.cuh"
#include "csrc/cuda/vector_io.cuh"

namespace satformer::ops::cuda {

// Numbers [begin, begin + 8) of a row of n; 0 from n on. begin is a multiple of 8.
__device__ __forceinline__ void load(float (&out)[kEight], const Input& x, int64_t row, int64_t begin, int64_t n) {
  const int64_t i = row * x.stride + begin;
  with_type(x.dtype, [&](auto type) {
    load_up_to(out, static_cast<const TypeOf<decltype(type)>*>(x.data) + i, n - begin, x.on_grid);
  });
}

__device__ __forceinline__ void store(const Output& x, const float (&numbers)[kEight], int64_t row, int64_t begin,
                                      int64_t n) {
  const int64_t i = row * x.stride + begin;
  with_type(x.dtype, [&](auto type) {
    store_up_to(static_cast<TypeOf<decltype(type)>*>(x.data) + i, numbers, n - begin, x.on_grid);
  });
}

constexpr int kMostWarps = 32;

// Sum and maximum over the blockDim.x threads (whole warps) that share a row, in the order of the warps; each of them
// gets the result. Every thread of the block calls it. `scratch`: kMostWarps numbers of shared memory; it may be used
// again at once.
template <typename Combine>
__device__ __forceinline__ float over_row(float of_warp, float* scratch, const Combine& combine) {
  if (blockDim.x == kWarp) return of_warp;
  const int warps = static_cast<int>(blockDim.x) / kWarp, first = static_cast<int>(threadIdx.y) * warps;
  if (threadIdx.x % kWarp == 0) scratch[first + threadIdx.x / kWarp] = of_warp;
  __syncthreads();
  float result = scratch[first];
  for (int w = 1; w < warps; ++w) result = combine(result, scratch[first + w]);
  __syncthreads();
  return result;
}

struct Add {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  __device__ __forceinline__ float operator()(float a, float b) const { return b > a || b != b ? b : a; }  // NaN wins
};
__device__ __forceinline__ float row_sum(float x, float* scratch) {
  return over_row(lanes_sum(x, kWarp), scratch, Add());
}
__device__ __forceinline__ float row_max(float x, float* scratch) {
  return over_row(lanes_max(x, kWarp), scratch, Larger());
}

}  // namespace satformer::ops::cuda
