// CUDA: checks, output tensors and stream; the kernels are in gated_value_mix.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/from_tensor.h"
#include "csrc/cuda/gated_value_mix_launch.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/gated_value_mix_checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops::cuda {
namespace {

Gates gates_of(const GateArguments& arguments) {
  return {arguments.gate, gate_source_of(arguments.logits), gate_source_of(arguments.scale),
          gate_source_of(arguments.shift)};
}

// out: contiguous, or v itself.
void mix(const at::Tensor& out, const at::Tensor& v, const at::Tensor& first_values, const GateArguments& gates) {
  MixArguments arguments{};
  arguments.sizes = sizes_of(v);
  arguments.dtype = dtype_of(v);
  arguments.gates = gates_of(gates);
  arguments.out = out.mutable_data_ptr();
  arguments.v = v.const_data_ptr();
  arguments.first_values = first_values.const_data_ptr();
  arguments.out_strides = strides_of(out);
  arguments.v_strides = strides_of(v);
  arguments.first_strides = strides_of(first_values);
  C10_CUDA_CHECK(launch_mix(arguments, c10::cuda::getCurrentCUDAStream()));
}

at::Tensor gated_value_mix_cuda(const GatedValueMixArguments& in) {
  check_gated_value_mix(in, /*in_place=*/false);
  const c10::cuda::CUDAGuard device(in.values.device());
  at::Tensor out = at::empty(in.values.sizes(), in.values.options());
  mix(out, in.values, in.first_values, gate_arguments(in));
  return out;
}

void gated_value_mix_in_place_cuda(const GatedValueMixArguments& in) {
  check_gated_value_mix(in, /*in_place=*/true);
  const c10::cuda::CUDAGuard device(in.values.device());
  mix(in.values, in.values, in.first_values, gate_arguments(in));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward_cuda(
    const GatedValueMixArguments& in, std::array<bool, 4> output_mask) {
  check_gated_value_mix_backward(in);
  const at::Tensor &grad = in.values, &first_values = in.first_values, &logits = in.logits;
  const c10::cuda::CUDAGuard device(grad.device());
  const GatedValueMixGradients out = outputs_of_gated_value_mix_backward(in, output_mask);
  const at::Tensor rows = contiguous_rows(grad);
  at::Tensor dots;
  if (out.logits.defined() && is_over_heads(in.gate)) {
    dots = at::empty(logits.sizes(), logits.options().dtype(at::kFloat));
  }
  MixBackwardArguments arguments{};
  arguments.sizes = sizes_of(grad);
  arguments.dtype = dtype_of(grad);
  arguments.gates = gates_of(gate_arguments(in));
  arguments.grad = rows.const_data_ptr();
  arguments.first_values = first_values.const_data_ptr();
  arguments.grad_strides = strides_of(rows);
  arguments.first_strides = strides_of(first_values);
  arguments.grad_first_values = mutable_data_of(out.first_values);
  arguments.grad_logits = mutable_data_of(out.logits);
  arguments.scale_terms = mutable_floats_of(out.scale_terms);
  arguments.shift_terms = mutable_floats_of(out.shift_terms);
  arguments.dots = mutable_floats_of(dots);
  C10_CUDA_CHECK(launch_mix_backward(arguments, c10::cuda::getCurrentCUDAStream()));
  return {out.first_values, out.logits, sum_terms(out.scale_terms, in.scale), sum_terms(out.shift_terms, in.shift)};
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"gated_value_mix", &cuda::gated_value_mix_cuda>(library);
  implement<"gated_value_mix_", &cuda::gated_value_mix_in_place_cuda>(library);
  implement<"gated_value_mix_backward", &cuda::gated_value_mix_backward_cuda>(library);
}
