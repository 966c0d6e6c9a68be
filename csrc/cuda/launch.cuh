// How launchers start kernels. A function instead of <<<...>>>: it returns this launch's own error rather than the
// last one of the thread, and a plain C++ compiler reads it, so that tests/cuda_host runs the launchers too.
#pragma once
#include <cuda_runtime.h>

#include <utility>

namespace satformer::ops::cuda {

struct LaunchShape {
  dim3 blocks, threads;
  cudaStream_t stream = nullptr;
  size_t shared_bytes = 0;  // dynamic shared memory
};

// launch(kernel<T>, {blocks, threads, stream}, arguments...)
template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const LaunchShape& shape, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.stream = shape.stream;
  config.dynamicSmemBytes = shape.shared_bytes;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace satformer::ops::cuda
