#pragma once
// The device functions at which threads do not meet: atomics, fences, cached loads and stores, arithmetic. Fast
// intrinsics are the exact functions of the C library here.
#include <algorithm>
#include <cmath>

#include "tests/cuda_host/rendezvous.h"

namespace cuda_host {

// One host thread runs everything and switches only where threads meet, so that plain updates are atomic. The race
// check is told.
#if defined(CUDA_HOST_RACECHECK)
extern volatile bool in_atomic;  // volatile: GCC believes that the hooks of the race check read no memory
struct Atomic {
  Atomic() { in_atomic = true; }
  ~Atomic() { in_atomic = false; }
};
#else
struct Atomic {
  Atomic() {}
};
#endif

template <typename T>
struct Same {
  using type = T;
};
template <typename T>
using NotDeduced = typename Same<T>::type;

}  // namespace cuda_host

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

#define CUDA_HOST_ATOMIC(name, result)                 \
  template <typename T>                                \
  T name(T* pointer, cuda_host::NotDeduced<T> value) { \
    const cuda_host::Atomic guard;                     \
    const T old = *pointer;                            \
    *pointer = (result);                               \
    return old;                                        \
  }
CUDA_HOST_ATOMIC(atomicAdd, old + value)
CUDA_HOST_ATOMIC(atomicSub, old - value)
CUDA_HOST_ATOMIC(atomicExch, value)
CUDA_HOST_ATOMIC(atomicMin, value < old ? value : old)
CUDA_HOST_ATOMIC(atomicMax, old < value ? value : old)
CUDA_HOST_ATOMIC(atomicAnd, old& value)
CUDA_HOST_ATOMIC(atomicOr, old | value)
CUDA_HOST_ATOMIC(atomicXor, old ^ value)
#undef CUDA_HOST_ATOMIC
template <typename T>
T atomicCAS(T* pointer, cuda_host::NotDeduced<T> compared, cuda_host::NotDeduced<T> value) {
  const cuda_host::Atomic guard;
  const T old = *pointer;
  if (old == compared) *pointer = value;
  return old;
}

#define CUDA_HOST_LOAD(name) \
  template <typename T>      \
  T name(const T* pointer) { \
    return *pointer;         \
  }
CUDA_HOST_LOAD(__ldg)
CUDA_HOST_LOAD(__ldca)
CUDA_HOST_LOAD(__ldcs)
CUDA_HOST_LOAD(__ldcg)
CUDA_HOST_LOAD(__ldcv)
CUDA_HOST_LOAD(__ldlu)
#undef CUDA_HOST_LOAD
#define CUDA_HOST_STORE(name)                             \
  template <typename T>                                   \
  void name(T* pointer, cuda_host::NotDeduced<T> value) { \
    *pointer = value;                                     \
  }
CUDA_HOST_STORE(__stcs)
CUDA_HOST_STORE(__stcg)
CUDA_HOST_STORE(__stwb)
CUDA_HOST_STORE(__stwt)
#undef CUDA_HOST_STORE

// The C library declares __expf and its kin (noexcept) without exporting them: the same signature, our own body.
inline float __expf(float x) noexcept { return expf(x); }
inline float __exp2f(float x) noexcept { return exp2f(x); }
inline float __exp10f(float x) noexcept { return powf(10.f, x); }
inline float __logf(float x) noexcept { return logf(x); }
inline float __log2f(float x) noexcept { return log2f(x); }
inline float __log10f(float x) noexcept { return log10f(x); }
inline float __sinf(float x) noexcept { return sinf(x); }
inline float __cosf(float x) noexcept { return cosf(x); }
inline float __tanf(float x) noexcept { return tanf(x); }
inline float __powf(float x, float y) noexcept { return powf(x, y); }
inline void __sincosf(float x, float* sine, float* cosine) noexcept { *sine = sinf(x), *cosine = cosf(x); }
inline float rsqrtf(float x) noexcept { return 1.f / sqrtf(x); }
inline double rsqrt(double x) noexcept { return 1.0 / sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.f / sqrtf(x); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.f / x; }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __saturatef(float x) { return x > 0.f ? (x < 1.f ? x : 1.f) : 0.f; }
inline int __float_as_int(float x) { return cuda_host::from_bits<int>(cuda_host::to_bits(x)); }
inline unsigned __float_as_uint(float x) { return cuda_host::from_bits<unsigned>(cuda_host::to_bits(x)); }
inline float __int_as_float(int x) { return cuda_host::from_bits<float>(cuda_host::to_bits(x)); }
inline float __uint_as_float(unsigned x) { return cuda_host::from_bits<float>(cuda_host::to_bits(x)); }
inline int __float2int_rn(float x) { return static_cast<int>(nearbyintf(x)); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
using std::max;
using std::min;
inline float min(float x, float y) { return fminf(x, y); }  // as on the device, the number where one is NaN
inline float max(float x, float y) { return fmaxf(x, y); }
