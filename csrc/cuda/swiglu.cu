// Launchers: a thread for every eight numbers.
#include "csrc/cuda/launch.cuh"
#include "csrc/cuda/swiglu_kernel.cuh"

namespace satformer::ops::cuda {
namespace {

dim3 blocks_for_pieces(int64_t rows, int64_t f) {
  const int64_t threads = rows * ((f + kEight - 1) / kEight);
  return dim3(static_cast<unsigned>((threads + kSwigluThreads - 1) / kSwigluThreads));
}

}  // namespace

cudaError_t launch_swiglu(const SwigluArguments& a, cudaStream_t stream) {
  if (a.rows * a.f == 0) return cudaSuccess;
  return launch(swiglu_kernel, {blocks_for_pieces(a.rows, a.f), dim3(kSwigluThreads), stream}, a);
}

cudaError_t launch_swiglu_backward(const SwigluBackwardArguments& a, cudaStream_t stream) {
  if (a.rows * a.f == 0) return cudaSuccess;
  return launch(swiglu_backward_kernel, {blocks_for_pieces(a.rows, a.f), dim3(kSwigluThreads), stream}, a);
}

}  // namespace satformer::ops::cuda
