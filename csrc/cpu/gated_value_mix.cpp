// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/cpu/gated_value_mix_kernel.h"
#include "csrc/ops/gated_value_mix_arguments.h"
#include "csrc/ops/gated_value_mix_calls.h"
#include "csrc/ops/row_arguments.h"

namespace at::native {
DEFINE_DISPATCH(satformer_gated_value_mix_stub);
DEFINE_DISPATCH(satformer_gated_value_mix_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

at::Tensor mix_cpu(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits, std::string_view gate,
                   const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift) {
  const Gate checked = check_mix(v, first_values, logits, gate, scale, shift, /*in_place=*/false);
  at::Tensor out = at::empty(v.sizes(), v.options());
  at::native::satformer_gated_value_mix_stub(at::kCPU, out, v, first_values,
                                             gate_arguments(checked, logits, scale, shift));
  return out;
}

void mix_in_place_cpu(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                      std::string_view gate, const std::optional<at::Tensor>& scale,
                      const std::optional<at::Tensor>& shift) {
  const Gate checked = check_mix(v, first_values, logits, gate, scale, shift, /*in_place=*/true);
  at::native::satformer_gated_value_mix_stub(at::kCPU, v, v, first_values,
                                             gate_arguments(checked, logits, scale, shift));
}

Gradients4 mix_backward_cpu(const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits,
                            std::string_view gate, const std::optional<at::Tensor>& scale,
                            const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask) {
  const Gate checked = check_mix_backward(grad, first_values, logits, gate, scale, shift);
  const MixGradients out = empty_gradients(first_values, logits, wanted_gradients(output_mask, scale, shift));
  at::native::satformer_gated_value_mix_backward_stub(at::kCPU, out, contiguous_rows(grad), first_values,
                                                      gate_arguments(checked, logits, scale, shift));
  return {out.first_values, out.logits, sum_terms(out.scale_terms, scale), sum_terms(out.shift_terms, shift)};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  library.impl("gated_value_mix", &satformer::ops::mix_cpu);
  library.impl("gated_value_mix_", &satformer::ops::mix_in_place_cpu);
  library.impl("gated_value_mix_backward", &satformer::ops::mix_backward_cpu);
}
