// Host stand-in for <cuda_runtime.h>: kernels in .cuh files, compiled by a plain C++ compiler.
// Put this folder on the include path before the CUDA headers (-I cuda_host -isystem <cuda>/include).
#pragma once
#include_next <cuda_runtime.h>

#ifdef __CUDACC__
#error "cuda_host/cuda_runtime.h must not be seen by nvcc"
#endif
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#define CUDA_HOST 1
// crt/host_defines.h makes __global__, __device__, __host__ and __shared__ empty for g++; an empty
// __shared__ would be a local variable of each thread. thread_local is the one storage class which is
// implicitly static inside a function, may follow `extern`, and works in templates. (Compile kernels with
// -fno-extern-tls-init -fno-strict-aliasing; without the first, GCC calls a null init function of `extern` ones.)
#undef __shared__
#define __shared__ thread_local
#undef __launch_bounds__
#define __launch_bounds__(...)
#ifndef __noinline__
#define __noinline__  // must stay empty: libstdc++ writes __attribute__((__noinline__))
#endif
// A kernel's `extern __shared__ T name[];` needs one definition in the test, in the kernel's namespace.
#define CUDA_HOST_DYNAMIC_SHARED(T, name)                                  \
  alignas(1024) thread_local T name[cuda_host::kMaxDynamic / sizeof(T)]; \
  static const bool cuda_host_reg_##name = cuda_host::register_dynamic([]() -> void* { return name; })

extern uint3 threadIdx, blockIdx;  // set by the engine at each switch
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cuda_host {
constexpr size_t kMaxDynamic = 256 * 1024;
bool register_dynamic(void* (*address)());

enum class Op : uint8_t {
  none,
  syncthreads,
  syncthreads_count,
  syncthreads_and,
  syncthreads_or,
  syncwarp,
  shfl,
  shfl_up,
  shfl_down,
  shfl_xor,
  ballot,
  any,
  all,
  match_any,
  add,
  min,
  max,
  umin,
  umax,
  band,
  bor,
  bxor
};
struct Site {
  const char* file;
  int line;
};
// Block-wide rendezvous / warp-wide rendezvous of the lanes in `mask`; both give the thread's result.
uint64_t block_op(Op op, uint64_t value, Site site);
uint64_t warp_op(Op op, unsigned mask, uint64_t value, int arg, int width, Site site);
unsigned active_mask();

template <class T>
struct same {
  using type = T;
};
template <class T>
using same_t = typename same<T>::type;  // no deduction from this argument

template <class T>
uint64_t pack(T v) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t u = 0;
  std::memcpy(&u, &v, sizeof v);
  return u;
}
template <class T>
T unpack(uint64_t u) {
  T v;
  std::memcpy(&v, &u, sizeof v);
  return v;
}
}  // namespace cuda_host

#define CUDA_HOST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define CUDA_HOST_HERE \
  cuda_host::Site { file, line }
inline void __syncthreads(CUDA_HOST_SITE) { cuda_host::block_op(cuda_host::Op::syncthreads, 0, CUDA_HOST_HERE); }
inline int __syncthreads_count(int p, CUDA_HOST_SITE) {
  return (int)cuda_host::block_op(cuda_host::Op::syncthreads_count, p != 0, CUDA_HOST_HERE);
}
inline int __syncthreads_and(int p, CUDA_HOST_SITE) {
  return (int)cuda_host::block_op(cuda_host::Op::syncthreads_and, p != 0, CUDA_HOST_HERE);
}
inline int __syncthreads_or(int p, CUDA_HOST_SITE) {
  return (int)cuda_host::block_op(cuda_host::Op::syncthreads_or, p != 0, CUDA_HOST_HERE);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_HOST_SITE) {
  cuda_host::warp_op(cuda_host::Op::syncwarp, mask, 0, 0, 32, CUDA_HOST_HERE);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline unsigned __activemask() { return cuda_host::active_mask(); }

#define CUDA_HOST_SHFL(name, op, argtype)                                                                \
  template <class T>                                                                                   \
  T name(unsigned mask, T v, argtype a, int width = 32, CUDA_HOST_SITE) {                                \
    return cuda_host::unpack<T>(                                                                       \
        cuda_host::warp_op(cuda_host::Op::op, mask, cuda_host::pack(v), (int)a, width, CUDA_HOST_HERE)); \
  }
CUDA_HOST_SHFL(__shfl_sync, shfl, int)
CUDA_HOST_SHFL(__shfl_up_sync, shfl_up, unsigned)
CUDA_HOST_SHFL(__shfl_down_sync, shfl_down, unsigned)
CUDA_HOST_SHFL(__shfl_xor_sync, shfl_xor, int)
inline unsigned __ballot_sync(unsigned mask, int p, CUDA_HOST_SITE) {
  return (unsigned)cuda_host::warp_op(cuda_host::Op::ballot, mask, p != 0, 0, 32, CUDA_HOST_HERE);
}
inline int __any_sync(unsigned mask, int p, CUDA_HOST_SITE) {
  return (int)cuda_host::warp_op(cuda_host::Op::any, mask, p != 0, 0, 32, CUDA_HOST_HERE);
}
inline int __all_sync(unsigned mask, int p, CUDA_HOST_SITE) {
  return (int)cuda_host::warp_op(cuda_host::Op::all, mask, p != 0, 0, 32, CUDA_HOST_HERE);
}
template <class T>
unsigned __match_any_sync(unsigned mask, T v, CUDA_HOST_SITE) {
  return (unsigned)cuda_host::warp_op(cuda_host::Op::match_any, mask, cuda_host::pack(v), 0, 32, CUDA_HOST_HERE);
}
#define CUDA_HOST_REDUCE(name, T, op)                                                                 \
  inline T name(unsigned mask, T v, CUDA_HOST_SITE) {                                                 \
    return (T)cuda_host::warp_op(cuda_host::Op::op, mask, cuda_host::pack(v), 0, 32, CUDA_HOST_HERE); \
  }
CUDA_HOST_REDUCE(__reduce_add_sync, unsigned, add)
CUDA_HOST_REDUCE(__reduce_add_sync, int, add) CUDA_HOST_REDUCE(__reduce_min_sync, unsigned, umin)
    CUDA_HOST_REDUCE(__reduce_min_sync, int, min) CUDA_HOST_REDUCE(__reduce_max_sync, unsigned, umax)
        CUDA_HOST_REDUCE(__reduce_max_sync, int, max) CUDA_HOST_REDUCE(__reduce_and_sync, unsigned, band)
            CUDA_HOST_REDUCE(__reduce_or_sync, unsigned, bor) CUDA_HOST_REDUCE(__reduce_xor_sync, unsigned, bxor)
// Atomics: one host thread runs everything and switches only at rendezvous, so plain updates are atomic.
#if defined(CUDA_HOST_RACECHECK)
                namespace cuda_host {
  extern volatile bool in_atomic;
  struct Atomic {
    Atomic() { in_atomic = true; }
    ~Atomic() { in_atomic = false; }
  };
}
#else
                namespace cuda_host {
  struct Atomic {
    Atomic() {}
  };
}
#endif
#define CUDA_HOST_ATOMIC(name, expr)       \
  template <class T>                     \
  T name(T* p, cuda_host::same_t<T> v) { \
    cuda_host::Atomic guard;             \
    T old = *p;                          \
    *p = (expr);                         \
    return old;                          \
  }
CUDA_HOST_ATOMIC(atomicAdd, old + v)
CUDA_HOST_ATOMIC(atomicSub, old - v) CUDA_HOST_ATOMIC(atomicExch, v) CUDA_HOST_ATOMIC(atomicMin, v < old ? v : old)
    CUDA_HOST_ATOMIC(atomicMax, old < v ? v : old) CUDA_HOST_ATOMIC(atomicAnd, old& v) CUDA_HOST_ATOMIC(atomicOr, old | v)
        CUDA_HOST_ATOMIC(atomicXor, old ^ v) template <class T>
        T atomicCAS(T* p, cuda_host::same_t<T> cmp, cuda_host::same_t<T> v) {
  cuda_host::Atomic guard;
  T old = *p;
  if (old == cmp) *p = v;
  return old;
}

template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __ldcs(const T* p) {
  return *p;
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}
template <class T>
void __stcs(T* p, cuda_host::same_t<T> v) {
  *p = v;
}
template <class T>
void __stcg(T* p, cuda_host::same_t<T> v) {
  *p = v;
}

// glibc declares __expf and friends (noexcept) without exporting them: same signature, own body.
inline float __expf(float x) noexcept { return expf(x); }
inline float __exp2f(float x) noexcept { return exp2f(x); }
inline float __logf(float x) noexcept { return logf(x); }
inline float __log2f(float x) noexcept { return log2f(x); }
inline float __sinf(float x) noexcept { return sinf(x); }
inline float __cosf(float x) noexcept { return cosf(x); }
inline float __powf(float x, float y) noexcept { return powf(x, y); }
inline float rsqrtf(float x) noexcept { return 1.f / sqrtf(x); }
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
inline int __float_as_int(float x) { return cuda_host::unpack<int>(cuda_host::pack(x)); }
inline unsigned __float_as_uint(float x) { return cuda_host::unpack<unsigned>(cuda_host::pack(x)); }
inline float __int_as_float(int x) { return cuda_host::unpack<float>(cuda_host::pack(x)); }
inline float __uint_as_float(unsigned x) { return cuda_host::unpack<float>(cuda_host::pack(x)); }
inline int __float2int_rn(float x) { return (int)nearbyintf(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
using std::max;
using std::min;
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }

// A launch runs the kernel at once; its errors are exceptions (cuda_host::Error). The limits of a real launch hold.
namespace cuda_host {
cudaError_t launch_kernel(const cudaLaunchConfig_t& config, void (*body)(void*), void* data, const void* kernel);

template <typename... Parameters, typename... Arguments>
cudaError_t launch_kernel_ex(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                             Arguments&&... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  } call{kernel, {std::forward<Arguments>(arguments)...}};
  const auto body = [](void* data) {
    auto* c = static_cast<Call*>(data);
    std::apply(c->kernel, c->arguments);
  };
  return launch_kernel(*config, body, &call, reinterpret_cast<const void*>(kernel));
}
}  // namespace cuda_host
#define cudaLaunchKernelEx ::cuda_host::launch_kernel_ex
