// CUDA: checks, the size of a chunk, stream; the kernel for a chunk's logits is in linear_cross_entropy.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/sum.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <algorithm>

#include "csrc/cuda/from_tensor.h"
#include "csrc/cuda/linear_cross_entropy_launch.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/linear_cross_entropy_chunks.h"

namespace satformer::ops::cuda {
namespace {

// Rows enough for matrix products at full speed; the logits of so many take 128 MiB, or a least number of rows more.
int64_t rows_a_chunk(const at::Tensor& hidden, const at::Tensor& weight) {
  constexpr int64_t kBytes = 128 << 20, kLeastRows = 1024, kMostRows = 16384;
  const int64_t bytes_a_row = std::max<int64_t>(1, weight.size(0) * static_cast<int64_t>(hidden.element_size()));
  return std::clamp(kBytes / bytes_a_row, kLeastRows, kMostRows);
}

void logit_rows(const LogitRows& rows) {
  LogitArguments a{};
  a.rows = rows.logits.size(0);
  a.V = rows.logits.size(1);
  a.logits = output_of(rows.logits);
  a.targets = rows.targets.const_data_ptr<int64_t>();
  a.losses = rows.losses.mutable_data_ptr<float>();
  a.ignore_index = rows.ignore_index;
  a.scale = static_cast<float>(rows.scale);
  a.with_gradients = rows.with_gradients;
  C10_CUDA_CHECK(launch_logit_rows(a, c10::cuda::getCurrentCUDAStream()));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> run(const char* op, const CrossEntropyArguments& arguments) {
  check_linear_cross_entropy(op, arguments);
  const c10::cuda::CUDAGuard device(arguments.hidden.device());
  const CrossEntropyResults results =
      cross_entropy_in_chunks(arguments, rows_a_chunk(arguments.hidden, arguments.weight), logit_rows);
  return {results.losses.sum(), results.grad_hidden, results.grad_weight};
}

at::Tensor linear_cross_entropy_cuda(const CrossEntropyInputs& in) {
  return std::get<0>(run("linear_cross_entropy", {in}));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy_with_gradients_cuda(
    const CrossEntropyArguments& in) {
  return run("linear_cross_entropy_with_gradients", in);
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"linear_cross_entropy", &cuda::linear_cross_entropy_cuda>(library);
  implement<"linear_cross_entropy_with_gradients", &cuda::linear_cross_entropy_with_gradients_cuda>(library);
}
