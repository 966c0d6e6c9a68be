// CUDA: checks, output tensors and stream; the kernels are in swiglu.cu.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/from_tensor.h"
#include "csrc/cuda/swiglu_launch.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/row_arguments.h"
#include "csrc/ops/swiglu_checks.h"

namespace satformer::ops::cuda {
namespace {

at::Tensor half(const at::Tensor& rows, int64_t i) {
  const int64_t f = rows.size(1) / 2;
  return rows.narrow(1, i * f, f);
}

at::Tensor swiglu_cuda(const at::Tensor& packed) {
  at::Tensor y = outputs_of_swiglu(packed);
  const c10::cuda::CUDAGuard device(packed.device());
  const at::Tensor rows = rows_of(packed), out = rows_of(y);
  C10_CUDA_CHECK(
      launch_swiglu({out.size(0), out.size(1), input_of(half(rows, 0)), input_of(half(rows, 1)), output_of(out)},
                    c10::cuda::getCurrentCUDAStream()));
  return y;
}

void backward(const at::Tensor& grad_packed, const at::Tensor& y, const at::Tensor& grad, const at::Tensor& packed) {
  const at::Tensor grad_rows = rows_of(grad), rows = rows_of(packed), out = rows_of(grad_packed);
  C10_CUDA_CHECK(launch_swiglu_backward(
      {grad_rows.size(0), grad_rows.size(1), input_of(grad_rows), input_of(half(rows, 0)), input_of(half(rows, 1)),
       output_of(half(out, 0)), output_of(half(out, 1)), output_of(y.defined() ? rows_of(y) : y)},
      c10::cuda::getCurrentCUDAStream()));
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward_cuda(const at::Tensor& grad, const at::Tensor& packed,
                                                        bool with_output) {
  auto [grad_packed, y] = outputs_of_swiglu_backward(grad, packed, with_output);
  const c10::cuda::CUDAGuard device(packed.device());
  backward(grad_packed, y, grad, packed);
  return {grad_packed, y};
}

// A thread reads its numbers of all three before it writes there.
void swiglu_backward_in_place_cuda(at::Tensor& packed, at::Tensor& grad) {
  check_swiglu_backward_in_place(packed, grad);
  const c10::cuda::CUDAGuard device(packed.device());
  backward(packed, grad, grad, packed);
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"swiglu", &cuda::swiglu_cuda>(library);
  implement<"swiglu_backward", &cuda::swiglu_backward_cuda>(library);
  implement<"swiglu_backward_", &cuda::swiglu_backward_in_place_cuda>(library);
}
