#include "csrc/cuda/launch.cuh"
#include "csrc/cuda/linear_cross_entropy_kernel.cuh"

namespace satformer::ops::cuda {

cudaError_t launch_logit_rows(const LogitArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  const LaunchShape shape{dim3(static_cast<unsigned>(a.rows)), dim3(kLogitThreads), stream};
  switch (a.logits.dtype) {
    case DType::kFloat32:
      return launch(logit_rows_kernel<float>, shape, a);
    case DType::kBFloat16:
      return launch(logit_rows_kernel<__nv_bfloat16>, shape, a);
    case DType::kFloat16:
      return launch(logit_rows_kernel<__half>, shape, a);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace satformer::ops::cuda
