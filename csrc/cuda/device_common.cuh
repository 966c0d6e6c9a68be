// What the CUDA kernels share: conversions, 16-byte accesses, reductions within a warp. No torch headers.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace satformer::ops::cuda {

constexpr unsigned kFullMask = 0xffffffffu;
__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(double x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }

template <typename T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

// 16 bytes, moved by one instruction.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

template <typename T>
__device__ __forceinline__ Pack<T> load_pack(const T* pointer) {
  return *reinterpret_cast<const Pack<T>*>(pointer);
}
template <typename T>
__device__ __forceinline__ void store_pack(T* pointer, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(pointer) = pack;
}

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
