// Launcher: chooses the element type.
#include "csrc/cuda/dispatch.cuh"
#include "csrc/cuda/launch.cuh"
#include "csrc/cuda/linear_cross_entropy_kernel.cuh"

namespace satformer::ops::cuda {

cudaError_t launch_logit_rows(const LogitArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  const LaunchShape shape{dim3(static_cast<unsigned>(a.rows)), dim3(kLogitThreads), stream};
  return launch_with_type(a.logits.dtype,
                          [&](auto type) { return launch(logit_rows_kernel<TypeOf<decltype(type)>>, shape, a); });
}

}  // namespace satformer::ops::cuda
