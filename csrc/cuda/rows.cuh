// How kernels move rows: a thread takes eight numbers at a time, as float32 in registers, in one or two instructions of
// 16 bytes where the row allows it. The dtype is looked up at run time: one branch, the same for all threads, for every
// eight numbers of a kernel that waits for memory, in place of a kernel for each mixture of dtypes. No torch headers.
#pragma once
#include <cstdint>

#include "csrc/cuda/device_common.cuh"
#include "csrc/cuda/rows.h"

namespace satformer::ops::cuda {

constexpr int kEight = 8;

// Columns [0, count) of `x`; the rest 0. on_grid: x starts on 16 bytes.
template <typename T>
__device__ __forceinline__ void load_numbers(float (&out)[kEight], const T* x, int64_t count, bool on_grid) {
  constexpr int kSize = Pack<T>::kSize;
  if (on_grid && count >= kEight) {
#pragma unroll
    for (int k = 0; k < kEight; k += kSize) {
      const Pack<T> pack = load_pack(x + k);
#pragma unroll
      for (int i = 0; i < kSize; ++i) out[k + i] = to_float(pack.values[i]);
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kEight; ++k) out[k] = k < count ? to_float(x[k]) : 0.f;
}

template <typename T>
__device__ __forceinline__ void store_numbers(T* out, const float (&x)[kEight], int64_t count, bool on_grid) {
  constexpr int kSize = Pack<T>::kSize;
  if (on_grid && count >= kEight) {
#pragma unroll
    for (int k = 0; k < kEight; k += kSize) {
      Pack<T> pack;
#pragma unroll
      for (int i = 0; i < kSize; ++i) pack.values[i] = from_float<T>(x[k + i]);
      store_pack(out + k, pack);
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    if (k < count) out[k] = from_float<T>(x[k]);
  }
}

// Numbers [begin, begin + 8) of a row of n; 0 from n on. begin is a multiple of 8.
__device__ __forceinline__ void load(float (&out)[kEight], const Input& x, int64_t row, int64_t begin, int64_t n) {
  const int64_t i = row * x.stride + begin;
  switch (x.dtype) {
    case DType::kBFloat16:
      return load_numbers(out, static_cast<const __nv_bfloat16*>(x.data) + i, n - begin, x.on_grid);
    case DType::kFloat16:
      return load_numbers(out, static_cast<const __half*>(x.data) + i, n - begin, x.on_grid);
    default:
      return load_numbers(out, static_cast<const float*>(x.data) + i, n - begin, x.on_grid);
  }
}

__device__ __forceinline__ void store(const Output& x, const float (&numbers)[kEight], int64_t row, int64_t begin,
                                      int64_t n) {
  const int64_t i = row * x.stride + begin;
  switch (x.dtype) {
    case DType::kBFloat16:
      return store_numbers(static_cast<__nv_bfloat16*>(x.data) + i, numbers, n - begin, x.on_grid);
    case DType::kFloat16:
      return store_numbers(static_cast<__half*>(x.data) + i, numbers, n - begin, x.on_grid);
    default:
      return store_numbers(static_cast<float*>(x.data) + i, numbers, n - begin, x.on_grid);
  }
}

__device__ __forceinline__ float round_to(DType dtype, float x) {
  switch (dtype) {
    case DType::kBFloat16:
      return to_float(from_float<__nv_bfloat16>(x));
    case DType::kFloat16:
      return to_float(from_float<__half>(x));
    default:
      return x;
  }
}

constexpr int kWarp = 32, kMostWarps = 32;

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
