#pragma once
// The selective value mix in plain ATen calls: the definition that the kernels are held to, and what the second
// derivative uses. Any device, any floating dtype, any strides; differentiable any number of times.
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

#include "csrc/ops/gate.h"

namespace satformer::ops {

// alpha = gate(logits), the same shape [..., H_kv]; the softmax gates act over the last dimension. Computed and
// returned in float32 for float32, bfloat16 and float16 logits, in float64 for float64 ones.
at::Tensor apply_gate(const at::Tensor& logits, Gate gate);

// As gated_value_mix (csrc/ops/gated_value_mix.h), except that first_values is always read: 0 * NaN is NaN here.
at::Tensor gated_value_mix_reference(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                                     Gate gate = Gate::kRelu, const std::optional<at::Tensor>& scale = std::nullopt,
                                     const std::optional<at::Tensor>& shift = std::nullopt);

// As gated_value_mix_backward: its formulas, written out.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward_reference(
    const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
    const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask);

}  // namespace satformer::ops
