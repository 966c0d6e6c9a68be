// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/gated_value_mix_arguments.h"
#include "csrc/ops/gated_value_mix_calls.h"

namespace satformer::ops {
namespace {

at::Tensor mix_meta(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                    std::string_view gate, const std::optional<at::Tensor>& scale,
                    const std::optional<at::Tensor>& shift) {
  check_mix(v, first_values, logits, gate, scale, shift, /*in_place=*/false);
  return at::empty_symint(v.sym_sizes(), v.options());
}

void mix_in_place_meta(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                       std::string_view gate, const std::optional<at::Tensor>& scale,
                       const std::optional<at::Tensor>& shift) {
  check_mix(v, first_values, logits, gate, scale, shift, /*in_place=*/true);
}

Gradients4 mix_backward_meta(const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits,
                             std::string_view gate, const std::optional<at::Tensor>& scale,
                             const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask) {
  check_mix_backward(grad, first_values, logits, gate, scale, shift);
  const std::array<bool, 4> wanted = wanted_gradients(output_mask, scale, shift);
  const auto empty_if = [](bool condition, const at::Tensor& x) {
    return condition ? at::empty_symint(x.sym_sizes(), x.options()) : at::Tensor();
  };
  return {empty_if(wanted[0], first_values), empty_if(wanted[1], logits),
          empty_if(wanted[2], scale.value_or(at::Tensor())), empty_if(wanted[3], shift.value_or(at::Tensor()))};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("gated_value_mix", &satformer::ops::mix_meta);
  library.impl("gated_value_mix_", &satformer::ops::mix_in_place_meta);
  library.impl("gated_value_mix_backward", &satformer::ops::mix_backward_meta);
}
