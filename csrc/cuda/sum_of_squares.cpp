// CUDA: checks, scratch and stream; the kernels are in sum_of_squares.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/from_tensor.h"
#include "csrc/cuda/sum_of_squares_launch.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/sum_of_squares_checks.h"

namespace satformer::ops::cuda {
namespace {

at::Tensor sum_of_squares_cuda(at::TensorList tensors) {
  check_sum_of_squares(tensors);
  const c10::cuda::CUDAGuard device(tensors[0].device());
  const std::vector<at::Tensor> dense = dense_tensors(tensors);
  std::vector<SquaredNumbers> list;
  list.reserve(dense.size());
  int64_t blocks = 0;
  for (const at::Tensor& x : dense) {
    list.push_back({flat_input_of(x), x.numel()});
    blocks += flat_blocks(x.numel(), kSumOfSquaresBlock);
  }
  const at::TensorOptions options = tensors[0].options().dtype(at::kDouble);
  at::Tensor sum = at::empty({}, options);
  const at::Tensor partial_sums = at::empty({blocks}, options);
  C10_CUDA_CHECK(launch_sum_of_squares(list.data(), static_cast<int64_t>(list.size()),
                                       partial_sums.mutable_data_ptr<double>(), sum.mutable_data_ptr<double>(),
                                       c10::cuda::getCurrentCUDAStream()));
  return sum;
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"sum_of_squares", &cuda::sum_of_squares_cuda>(library);
}
