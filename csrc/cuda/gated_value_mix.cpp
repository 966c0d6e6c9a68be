// CUDA: checks, output tensors and stream; the kernels are in gated_value_mix.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/gated_value_mix_launch.h"
#include "csrc/cuda/tensor_arguments.h"
#include "csrc/ops/gated_value_mix_arguments.h"
#include "csrc/ops/gated_value_mix_calls.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops::cuda {
namespace {

Sizes sizes_of(const at::Tensor& values) { return {values.size(0), values.size(1), values.size(2), values.size(3)}; }

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

at::Tensor mix_cuda(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                    std::string_view gate, const std::optional<at::Tensor>& scale,
                    const std::optional<at::Tensor>& shift) {
  const Gate checked = check_mix(v, first_values, logits, gate, scale, shift, /*in_place=*/false);
  const c10::cuda::CUDAGuard device(v.device());
  at::Tensor out = at::empty(v.sizes(), v.options());
  mix(out, v, first_values, gate_arguments(checked, logits, scale, shift));
  return out;
}

void mix_in_place_cuda(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                       std::string_view gate, const std::optional<at::Tensor>& scale,
                       const std::optional<at::Tensor>& shift) {
  const Gate checked = check_mix(v, first_values, logits, gate, scale, shift, /*in_place=*/true);
  const c10::cuda::CUDAGuard device(v.device());
  mix(v, v, first_values, gate_arguments(checked, logits, scale, shift));
}

Gradients4 mix_backward_cuda(const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits,
                             std::string_view gate, const std::optional<at::Tensor>& scale,
                             const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask) {
  const Gate checked = check_mix_backward(grad, first_values, logits, gate, scale, shift);
  const c10::cuda::CUDAGuard device(grad.device());
  const MixGradients out = empty_gradients(first_values, logits, wanted_gradients(output_mask, scale, shift));
  const at::Tensor rows = contiguous_rows(grad);
  at::Tensor dots;
  if (out.logits.defined() && is_over_heads(checked)) {
    dots = at::empty(logits.sizes(), logits.options().dtype(at::kFloat));
  }
  MixBackwardArguments arguments{};
  arguments.sizes = sizes_of(grad);
  arguments.dtype = dtype_of(grad);
  arguments.gates = gates_of(gate_arguments(checked, logits, scale, shift));
  arguments.grad = rows.const_data_ptr();
  arguments.first_values = first_values.const_data_ptr();
  arguments.grad_strides = strides_of(rows);
  arguments.first_strides = strides_of(first_values);
  arguments.grad_first_values = data_or_null(out.first_values);
  arguments.grad_logits = data_or_null(out.logits);
  arguments.scale_terms = data_or_null<float>(out.scale_terms);
  arguments.shift_terms = data_or_null<float>(out.shift_terms);
  arguments.dots = data_or_null<float>(dots);
  C10_CUDA_CHECK(launch_mix_backward(arguments, c10::cuda::getCurrentCUDAStream()));
  return {out.first_values, out.logits, sum_terms(out.scale_terms, scale), sum_terms(out.shift_terms, shift)};
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  library.impl("gated_value_mix", &satformer::ops::cuda::mix_cuda);
  library.impl("gated_value_mix_", &satformer::ops::cuda::mix_in_place_cuda);
  library.impl("gated_value_mix_backward", &satformer::ops::cuda::mix_backward_cuda);
}
