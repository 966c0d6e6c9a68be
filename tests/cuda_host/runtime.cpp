// The few functions of the CUDA runtime that launchers call. Everything runs at once, on the host.
#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <string>

#include "tests/cuda_host/block.h"

namespace cuda_host {
namespace {

constexpr size_t kSharedWithoutConsent = 48 * 1024, kMostShared = 227 * 1024;  // of compute capability 9.0

// What cudaFuncSetAttribute allowed each kernel.
std::map<const void*, size_t>& allowed_shared() {
  static std::map<const void*, size_t> allowed;
  return allowed;
}

}  // namespace

cudaError_t launch_kernel(const cudaLaunchConfig_t& config, void (*body)(void*), void* data, const void* kernel) {
  const auto allowed = allowed_shared().find(kernel);
  const size_t most = allowed == allowed_shared().end() ? kSharedWithoutConsent : allowed->second;
  if (config.dynamicSmemBytes > most) {
    throw Error("cuda_host: " + std::to_string(config.dynamicSmemBytes) + " bytes of dynamic shared memory, allowed " +
                std::to_string(most) + " (cudaFuncAttributeMaxDynamicSharedMemorySize)");
  }
  run_grid(config.gridDim, config.blockDim, config.dynamicSmemBytes, body, data);
  return cudaSuccess;
}

}  // namespace cuda_host

extern "C" {

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "error"; }

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > cuda_host::kMostShared) return cudaErrorInvalidValue;
  cuda_host::allowed_shared()[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

// Three multiprocessors, so that loops over the grid go round also in small tests; otherwise compute capability 9.0.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 3;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(cuda_host::kMostShared);
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t) {
  std::memset(pointer, value, bytes);
  cuda_host::check_canaries();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  cuda_host::check_canaries();
  return cudaSuccess;
}

}  // extern "C"
