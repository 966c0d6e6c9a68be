// How kernels read and write numbers: conversions to and from the type they compute in, and neighbouring numbers moved
// in instructions of up to 16 bytes. No torch headers.
#pragma once
#include <cstdint>
#include <type_traits>

#include "csrc/cuda/dispatch.cuh"

namespace satformer::ops::cuda {

// --- conversions -----------------------------------------------------------------------------------------------------
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

// From memory's type to the arithmetic type, float or double, and back. Nothing is float64 in memory where the
// arithmetic is in float, save what is only read.
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

// x, rounded as a tensor of `dtype` would round it.
__device__ __forceinline__ float round_to(DType dtype, float x) {
  return with_type(dtype, [x](auto type) { return to_float(from_float<TypeOf<decltype(type)>>(x)); });
}

// --- one number of any dtype -----------------------------------------------------------------------------------------
__device__ __forceinline__ float load_number(const void* data, DType dtype, int64_t i) {
  return with_any_type(dtype, [=](auto type) { return to_float(static_cast<const TypeOf<decltype(type)>*>(data)[i]); });
}

// Not float64.
__device__ __forceinline__ void store_number(void* data, DType dtype, int64_t i, float x) {
  with_type(dtype, [=](auto type) {
    using T = TypeOf<decltype(type)>;
    static_cast<T*>(data)[i] = from_float<T>(x);
  });
}

// --- neighbouring numbers --------------------------------------------------------------------------------------------
// n numbers that one instruction moves: 16 bytes, where it is not said how many.
template <typename T, int n = 16 / sizeof(T)>
struct alignas(sizeof(T) * n) Pack {
  static constexpr int kSize = n;
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

// The widest pack for n numbers, a power of two.
template <typename T, int n>
using PackFor = Pack<T, (n * sizeof(T) > 16) ? 16 / sizeof(T) : n>;

// n numbers at data, which starts on a pack. One number alone is no pack: the compiler knows better what it may alias.
template <typename acc_t, int n, typename T>
__device__ __forceinline__ void load_numbers(acc_t (&x)[n], const T* data) {
  if constexpr (n == 1) {
    x[0] = widened<acc_t>(data[0]);
  } else {
    using P = PackFor<T, n>;
#pragma unroll
    for (int k = 0; k < n; k += P::kSize) {
      const P pack = *reinterpret_cast<const P*>(data + k);
#pragma unroll
      for (int i = 0; i < P::kSize; ++i) x[k + i] = widened<acc_t>(pack.values[i]);
    }
  }
}
template <typename acc_t, int n, typename T>
__device__ __forceinline__ void store_numbers(T* data, const acc_t (&x)[n]) {
  if constexpr (n == 1) {
    data[0] = narrowed<T>(x[0]);
  } else {
    using P = PackFor<T, n>;
#pragma unroll
    for (int k = 0; k < n; k += P::kSize) {
      P pack;
#pragma unroll
      for (int i = 0; i < P::kSize; ++i) pack.values[i] = narrowed<T>(x[k + i]);
      *reinterpret_cast<P*>(data + k) = pack;
    }
  }
}

// What most kernels on rows and lists move at a time.
constexpr int kEight = 8;

// Number by number: the first `count` at data; the rest 0.
template <typename acc_t, typename T>
__device__ __forceinline__ void load_each(acc_t (&x)[kEight], const T* data, int64_t count) {
#pragma unroll
  for (int k = 0; k < kEight; ++k) x[k] = k < count ? widened<acc_t>(data[k]) : acc_t(0);
}
template <typename acc_t, typename T>
__device__ __forceinline__ void store_each(T* data, const acc_t (&x)[kEight], int64_t count) {
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    if (k < count) data[k] = narrowed<T>(x[k]);
  }
}

// The same, in packs where all eight are there. on_grid: data starts on 16 bytes.
template <typename acc_t, typename T>
__device__ __forceinline__ void load_up_to(acc_t (&x)[kEight], const T* data, int64_t count, bool on_grid) {
  on_grid&& count >= kEight ? load_numbers(x, data) : load_each(x, data, count);
}
template <typename acc_t, typename T>
__device__ __forceinline__ void store_up_to(T* data, const acc_t (&x)[kEight], int64_t count, bool on_grid) {
  on_grid&& count >= kEight ? store_numbers(data, x) : store_each(data, x, count);
}

// Where data may start is found out here. An overload, not a call of the one above: with the address looked at before
// the count adamw_ takes 10 registers more.
__device__ __forceinline__ bool starts_on_grid(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }
template <typename acc_t, typename T>
__device__ __forceinline__ void load_up_to(acc_t (&x)[kEight], const T* data, int64_t count) {
  count >= kEight&& starts_on_grid(data) ? load_numbers(x, data) : load_each(x, data, count);
}
template <typename acc_t, typename T>
__device__ __forceinline__ void store_up_to(T* data, const acc_t (&x)[kEight], int64_t count) {
  count >= kEight&& starts_on_grid(data) ? store_numbers(data, x) : store_each(data, x, count);
}

}  // namespace satformer::ops::cuda
