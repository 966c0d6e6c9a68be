// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/cpu/gated_value_mix_kernel.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/gated_value_mix_checks.h"
#include "csrc/ops/row_arguments.h"

namespace at::native {
DEFINE_DISPATCH(satformer_gated_value_mix_stub);
DEFINE_DISPATCH(satformer_gated_value_mix_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

at::Tensor gated_value_mix_cpu(const GatedValueMixArguments& in) {
  check_gated_value_mix(in, /*in_place=*/false);
  at::Tensor out = at::empty(in.values.sizes(), in.values.options());
  at::native::satformer_gated_value_mix_stub(at::kCPU, out, in.values, in.first_values, gate_arguments(in));
  return out;
}

void gated_value_mix_in_place_cpu(const GatedValueMixArguments& in) {
  check_gated_value_mix(in, /*in_place=*/true);
  at::native::satformer_gated_value_mix_stub(at::kCPU, in.values, in.values, in.first_values, gate_arguments(in));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward_cpu(
    const GatedValueMixArguments& in, std::array<bool, 4> output_mask) {
  check_gated_value_mix_backward(in);
  const GatedValueMixGradients out = outputs_of_gated_value_mix_backward(in, output_mask);
  at::native::satformer_gated_value_mix_backward_stub(at::kCPU, out, contiguous_rows(in.values), in.first_values,
                                                      gate_arguments(in));
  return {out.first_values, out.logits, sum_terms(out.scale_terms, in.scale), sum_terms(out.shift_terms, in.shift)};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"gated_value_mix", &gated_value_mix_cpu>(library);
  implement<"gated_value_mix_", &gated_value_mix_in_place_cpu>(library);
  implement<"gated_value_mix_backward", &gated_value_mix_backward_cpu>(library);
}
