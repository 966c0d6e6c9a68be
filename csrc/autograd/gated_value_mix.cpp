// Autograd: saves first_values, logits, scale and shift (not v); the backward is the operator
// gated_value_mix_backward, and its own derivative goes through the composite definition.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/gated_value_mix_calls.h"
#include "csrc/ops/gated_value_mix_reference.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void save(AutogradContext* context, const at::Tensor& first_values, const at::Tensor& logits, std::string_view gate,
          const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift) {
  context->save_for_backward({first_values, logits, scale.value_or(at::Tensor()), shift.value_or(at::Tensor())});
  context->saved_data["gate"] = std::string(gate);
}

std::optional<at::Tensor> optional(const at::Tensor& x) {
  return x.defined() ? std::optional<at::Tensor>(x) : std::nullopt;
}

// One gradient for each of the forward's arguments v, first_values, logits, gate, scale, shift.
variable_list backward_of_mix(AutogradContext* context, const variable_list& grads) {
  const variable_list saved = context->get_saved_variables();
  const at::Tensor &first_values = saved[0], &logits = saved[1], &scale = saved[2], &shift = saved[3];
  // Edges count the defined tensor arguments: v 0, first_values 1, logits 2, then scale and shift where given.
  const size_t scale_edge = 3, shift_edge = scale.defined() ? 4 : 3;
  const std::array<bool, 4> mask{context->needs_input_grad(1), context->needs_input_grad(2),
                                 scale.defined() && context->needs_input_grad(scale_edge),
                                 shift.defined() && context->needs_input_grad(shift_edge)};
  if (!mask[0] && !mask[1] && !mask[2] && !mask[3]) return {grads[0], {}, {}, {}, {}, {}};
  auto [grad_first_values, grad_logits, grad_scale, grad_shift] =
      mix_backward_operator().call(grads[0], first_values, logits, context->saved_data["gate"].toStringRef(),
                                   optional(scale), optional(shift), mask);
  return {grads[0], grad_first_values, grad_logits, {}, grad_scale, grad_shift};
}

struct GatedValueMix : torch::autograd::Function<GatedValueMix> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& v, const at::Tensor& first_values,
                            const at::Tensor& logits, std::string_view gate, const std::optional<at::Tensor>& scale,
                            const std::optional<at::Tensor>& shift) {
    const at::AutoDispatchBelowADInplaceOrView below;
    at::Tensor mixed = mix_operator().call(v, first_values, logits, gate, scale, shift);
    save(context, first_values, logits, gate, scale, shift);
    return mixed;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return backward_of_mix(context, grads);
  }
};

struct GatedValueMixInPlace : torch::autograd::Function<GatedValueMixInPlace> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& v, const at::Tensor& first_values,
                            const at::Tensor& logits, std::string_view gate, const std::optional<at::Tensor>& scale,
                            const std::optional<at::Tensor>& shift) {
    const at::AutoDispatchBelowADInplaceOrView below;
    mix_in_place_operator().call(v, first_values, logits, gate, scale, shift);
    save(context, first_values, logits, gate, scale, shift);
    context->mark_dirty({v});
    return v;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return backward_of_mix(context, grads);
  }
};

at::Tensor mix_autograd(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                        std::string_view gate, const std::optional<at::Tensor>& scale,
                        const std::optional<at::Tensor>& shift) {
  return GatedValueMix::apply(v, first_values, logits, gate, scale, shift);
}

bool requires_grad(const std::optional<at::Tensor>& x) { return x.has_value() && x->defined() && x->requires_grad(); }

// What the backward needs must not be overwritten. (The version counter cannot tell: it is read after the write.)
void check_not_overwritten(const char* name, const std::optional<at::Tensor>& saved, const at::Tensor& v) {
  if (!saved.has_value() || !saved->defined()) return;
  TORCH_CHECK(!saved->has_storage() || !v.has_storage() || !saved->is_alias_of(v), "gated_value_mix_: ", name,
              " is needed for the gradients but shares memory with v, which is overwritten; clone it or use "
              "gated_value_mix");
}

void mix_in_place_autograd(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                           std::string_view gate, const std::optional<at::Tensor>& scale,
                           const std::optional<at::Tensor>& shift) {
  const bool needs_saved =
      first_values.requires_grad() || logits.requires_grad() || requires_grad(scale) || requires_grad(shift);
  // Before anything is written: apply() would refuse a leaf only after its values are gone.
  torch::autograd::check_inplace(v, v.requires_grad() || needs_saved);
  if (needs_saved && at::GradMode::is_enabled()) {
    check_not_overwritten("first_values", first_values, v);
    check_not_overwritten("logits", logits, v);
    check_not_overwritten("scale", scale, v);
    check_not_overwritten("shift", shift, v);
  }
  GatedValueMixInPlace::apply(v, first_values, logits, gate, scale, shift);
}

Gradients4 mix_backward_autograd(const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits,
                                 std::string_view gate, const std::optional<at::Tensor>& scale,
                                 const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask) {
  const bool differentiable = grad.requires_grad() || first_values.requires_grad() || logits.requires_grad() ||
                              requires_grad(scale) || requires_grad(shift);
  if (at::GradMode::is_enabled() && differentiable) {
    return gated_value_mix_backward_reference(grad, first_values, logits, gate_from_name(gate), scale, shift,
                                              output_mask);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return mix_backward_operator().call(grad, first_values, logits, gate, scale, shift, output_mask);
}

// Outside autograd (inference mode on ordinary tensors) the version counter must still see the write.
void mix_in_place_version(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                          std::string_view gate, const std::optional<at::Tensor>& scale,
                          const std::optional<at::Tensor>& shift) {
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    mix_in_place_operator().call(v, first_values, logits, gate, scale, shift);
  }
  torch::autograd::impl::bump_version(v);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  library.impl("gated_value_mix", &satformer::ops::mix_autograd);
  library.impl("gated_value_mix_", &satformer::ops::mix_in_place_autograd);
  library.impl("gated_value_mix_backward", &satformer::ops::mix_backward_autograd);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  library.impl("gated_value_mix_", &satformer::ops::mix_in_place_version);
}
