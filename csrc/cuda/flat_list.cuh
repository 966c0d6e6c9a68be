// How kernels move the numbers of a list of tensors: a thread takes eight neighbouring ones at a time, in instructions
// of 16 bytes where memory allows it, and has them in acc_t (float or double). The dtype is looked up at run time, one
// branch for a whole block. No torch headers.
#pragma once
#include <cstdint>
#include <type_traits>

#include "csrc/cuda/device_common.cuh"
#include "csrc/cuda/flat_list.h"

namespace satformer::ops::cuda {

constexpr int kFlatEight = 8, kFlatThreads = 256;

template <typename acc_t, typename T>
__device__ __forceinline__ acc_t widened(T x) {
  if constexpr (std::is_same_v<T, acc_t>) {
    return x;
  } else {
    return static_cast<acc_t>(to_float(x));
  }
}

template <typename T, typename acc_t>
__device__ __forceinline__ T narrowed(acc_t x) {
  if constexpr (std::is_same_v<T, acc_t>) {
    return x;
  } else {
    return from_float<T>(static_cast<float>(x));
  }
}

// x[0, count); the rest 0.
template <typename acc_t, typename T>
__device__ __forceinline__ void load_eight(acc_t (&out)[kFlatEight], const T* x, int64_t count) {
  constexpr int kSize = Pack<T>::kSize;
  if (count >= kFlatEight && reinterpret_cast<uintptr_t>(x) % 16 == 0) {
#pragma unroll
    for (int k = 0; k < kFlatEight; k += kSize) {
      const Pack<T> pack = load_pack(x + k);
#pragma unroll
      for (int i = 0; i < kSize; ++i) out[k + i] = widened<acc_t>(pack.values[i]);
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kFlatEight; ++k) out[k] = k < count ? widened<acc_t>(x[k]) : acc_t(0);
}

template <typename T, typename acc_t>
__device__ __forceinline__ void store_eight(T* out, const acc_t (&x)[kFlatEight], int64_t count) {
  constexpr int kSize = Pack<T>::kSize;
  if (count >= kFlatEight && reinterpret_cast<uintptr_t>(out) % 16 == 0) {
#pragma unroll
    for (int k = 0; k < kFlatEight; k += kSize) {
      Pack<T> pack;
#pragma unroll
      for (int i = 0; i < kSize; ++i) pack.values[i] = narrowed<T>(x[k + i]);
      store_pack(out + k, pack);
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kFlatEight; ++k) {
    if (k < count) out[k] = narrowed<T>(x[k]);
  }
}

// Numbers [begin, begin + 8) of a tensor of n; 0 from n on.
template <typename acc_t>
__device__ __forceinline__ void load_numbers(acc_t (&out)[kFlatEight], FlatNumbers<const void*> x, int64_t begin,
                                             int64_t n) {
  switch (x.dtype) {
    case DType::kFloat64:
      return load_eight(out, static_cast<const double*>(x.data) + begin, n - begin);
    case DType::kBFloat16:
      return load_eight(out, static_cast<const __nv_bfloat16*>(x.data) + begin, n - begin);
    case DType::kFloat16:
      return load_eight(out, static_cast<const __half*>(x.data) + begin, n - begin);
    default:
      return load_eight(out, static_cast<const float*>(x.data) + begin, n - begin);
  }
}

// The same of a tensor that is computed in acc_t: float64 where acc_t is double, never otherwise.
template <typename acc_t>
__device__ __forceinline__ void load_own(acc_t (&out)[kFlatEight], FlatNumbers<void*> x, int64_t begin, int64_t n) {
  if constexpr (std::is_same_v<acc_t, double>) {
    load_eight(out, static_cast<const double*>(x.data) + begin, n - begin);
  } else if (x.dtype == DType::kBFloat16) {
    load_eight(out, static_cast<const __nv_bfloat16*>(x.data) + begin, n - begin);
  } else if (x.dtype == DType::kFloat16) {
    load_eight(out, static_cast<const __half*>(x.data) + begin, n - begin);
  } else {
    load_eight(out, static_cast<const float*>(x.data) + begin, n - begin);
  }
}

template <typename acc_t>
__device__ __forceinline__ void store_own(FlatNumbers<void*> x, const acc_t (&numbers)[kFlatEight], int64_t begin,
                                          int64_t n) {
  if constexpr (std::is_same_v<acc_t, double>) {
    store_eight(static_cast<double*>(x.data) + begin, numbers, n - begin);
  } else if (x.dtype == DType::kBFloat16) {
    store_eight(static_cast<__nv_bfloat16*>(x.data) + begin, numbers, n - begin);
  } else if (x.dtype == DType::kFloat16) {
    store_eight(static_cast<__half*>(x.data) + begin, numbers, n - begin);
  } else {
    store_eight(static_cast<float*>(x.data) + begin, numbers, n - begin);
  }
}

// The tensor of a block: the last entry of the table that begins at or before it.
template <typename Table>
__device__ __forceinline__ int tensor_of_block(const Table& table, int block) {
  int low = 0, high = table.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (table.first_block[middle] <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace satformer::ops::cuda
