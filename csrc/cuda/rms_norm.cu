// Launchers: how many threads share a row, how many rows a block has.
#include "csrc/cuda/launch.cuh"
#include "csrc/cuda/rms_norm_kernel.cuh"

namespace satformer::ops::cuda {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whole warps for a row of n numbers; rows enough to make a block of about 256 threads.
dim3 threads_for(int64_t n) {
  const auto threads = static_cast<unsigned>(divide_up(divide_up(n, kEight), kWarp) * kWarp);
  return {threads, threads < 256 ? 256 / threads : 1, 1};
}

}  // namespace

cudaError_t launch_norm(const NormArguments& a, cudaStream_t stream) {
  if (a.rows == 0) return cudaSuccess;
  if (a.n < 1 || a.n > kLongestNormRow) return cudaErrorInvalidValue;
  const dim3 threads = threads_for(a.n);
  return launch(norm_kernel, {dim3(static_cast<unsigned>(divide_up(a.rows, threads.y))), threads, stream}, a);
}

cudaError_t launch_norm_backward(const NormBackwardArguments& a, cudaStream_t stream) {
  if (a.n == 0) return cudaSuccess;
  if (a.n > kLongestNormRow) return cudaErrorInvalidValue;
  if (a.rows > 0) {
    const dim3 threads = threads_for(a.n);
    const int64_t groups = divide_up(a.rows, a.rows_a_block);
    const cudaError_t error =
        launch(norm_backward_kernel, {dim3(static_cast<unsigned>(divide_up(groups, threads.y))), threads, stream}, a);
    if (error != cudaSuccess) return error;
  }
  return launch(sum_partial_kernel,
                {dim3(static_cast<unsigned>(divide_up(a.n, kColumns))), dim3(kColumns, kSummers), stream}, a);
}

}  // namespace satformer::ops::cuda
