#pragma once
// Stands before CUDA's own <cuda_runtime.h>: with it a plain C++ compiler reads kernels and launchers
// (docs/cuda_host.md).
#include_next <cuda_runtime.h>

#ifdef __CUDACC__
#error "tests/cuda_host/include is not for nvcc"
#endif
#include <cstddef>
#include <tuple>
#include <utility>

// CUDA's headers make __global__, __device__, __host__ and __shared__ empty for a C++ compiler; an empty __shared__
// would be a local variable of each thread. thread_local is the one storage class which is implicitly static inside a
// function, may follow `extern`, and works in templates.
#undef __shared__
#define __shared__ thread_local
#undef __launch_bounds__
#define __launch_bounds__(...)
#ifndef __noinline__
#define __noinline__  // empty, because libstdc++ writes __attribute__((__noinline__))
#endif

// A kernel's `extern __shared__ T name[];` needs one definition, in the test, in the kernel's namespace.
#define CUDA_HOST_DYNAMIC_SHARED(T, name)                                          \
  alignas(1024) thread_local T name[cuda_host::kLargestDynamicShared / sizeof(T)]; \
  [[maybe_unused]] static const bool name##_registered =                           \
      cuda_host::register_dynamic_shared([]() -> void* { return name; })

extern uint3 threadIdx, blockIdx;  // the engine sets them at each switch
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cuda_host {

constexpr std::size_t kLargestDynamicShared = 256 * 1024;
bool register_dynamic_shared(void* (*address)());

// Calls body(data) once for each thread of the grid, at once. Errors are exceptions.
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

// CUDA's header has this form, which takes the kernel itself, for nvcc alone.
template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

#include "tests/cuda_host/device_functions.h"
#include "tests/cuda_host/rendezvous.h"
