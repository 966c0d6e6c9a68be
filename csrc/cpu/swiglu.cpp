// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/cpu/swiglu_kernel.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/row_arguments.h"
#include "csrc/ops/swiglu_checks.h"

namespace at::native {
DEFINE_DISPATCH(satformer_swiglu_stub);
DEFINE_DISPATCH(satformer_swiglu_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

at::Tensor swiglu_cpu(const at::Tensor& packed) {
  at::Tensor y = outputs_of_swiglu(packed);
  at::native::satformer_swiglu_stub(at::kCPU, rows_of(y), rows_of(packed));
  return y;
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward_cpu(const at::Tensor& grad, const at::Tensor& packed,
                                                       bool with_output) {
  auto [grad_packed, y] = outputs_of_swiglu_backward(grad, packed, with_output);
  at::native::satformer_swiglu_backward_stub(at::kCPU, rows_of(grad_packed), y.defined() ? rows_of(y) : y,
                                             rows_of(grad), rows_of(packed));
  return {grad_packed, y};
}

// The kernel reads a vector of each before it writes there.
void swiglu_backward_in_place_cpu(at::Tensor& packed, at::Tensor& grad) {
  check_swiglu_backward_in_place(packed, grad);
  const at::Tensor rows = rows_of(packed), grad_rows = rows_of(grad);
  at::native::satformer_swiglu_backward_stub(at::kCPU, rows, grad_rows, grad_rows, rows);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"swiglu", &swiglu_cpu>(library);
  implement<"swiglu_backward", &swiglu_backward_cpu>(library);
  implement<"swiglu_backward_", &swiglu_backward_in_place_cpu>(library);
}
