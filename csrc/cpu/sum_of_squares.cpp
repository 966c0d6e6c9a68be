// CPU: checks, the table of blocks, the kernel of this machine's capability, then the blocks' sums in their order.
#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/library.h>

#include <numeric>

#include "csrc/cpu/sum_of_squares_kernel.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/sum_of_squares_checks.h"

namespace at::native {
DEFINE_DISPATCH(satformer_sum_of_squares_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

at::Tensor sum_of_squares_cpu(at::TensorList tensors) {
  check_sum_of_squares(tensors);
  const std::vector<at::Tensor> dense = dense_tensors(tensors);
  std::vector<FlatNumbers> numbers;
  numbers.reserve(dense.size());
  for (const at::Tensor& x : dense) numbers.push_back({x.const_data_ptr(), x.scalar_type()});
  const FlatBlockTable table(dense);
  const FlatBlocks blocks = table.blocks();
  std::vector<double> block_sums(static_cast<std::size_t>(blocks.count));
  at::native::satformer_sum_of_squares_stub(at::kCPU, numbers.data(), blocks, block_sums.data());
  return at::scalar_tensor(std::accumulate(block_sums.begin(), block_sums.end(), 0.0), at::kDouble);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"sum_of_squares", &sum_of_squares_cpu>(library);
}
