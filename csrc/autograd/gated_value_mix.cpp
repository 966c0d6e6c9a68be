// Autograd: saves first_values, logits, scale and shift (not v); the backward is the operator
// gated_value_mix_backward, and its own derivative goes through the composite definition. Autocast: values in the
// autocast dtype; logits stay in float32 or that dtype, scale and shift as they are.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/gated_value_mix_checks.h"
#include "csrc/ops/gated_value_mix_reference.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using In = GatedValueMixArguments;

at::Tensor call_gated_value_mix(const In& in) {
  static const Operator<at::Tensor(const In&)> op("satformer::gated_value_mix");
  return op(in);
}

void call_gated_value_mix_in_place(const In& in) {
  static const Operator<void(const In&)> op("satformer::gated_value_mix_");
  op(in);
}

void save_for_gradients(AutogradContext* context, const In& in) {
  In kept = in;
  kept.values = at::Tensor();
  save_fields(context, in, kept);
}

variable_list backward_of_mix(AutogradContext* context, const variable_list& grads) {
  const auto in = saved_fields<In>(context);
  const std::array<bool, 4> mask = wanted(context, &In::first_values, &In::logits, &In::scale, &In::shift);
  In to;
  to.values = grads[0];
  if (mask[0] || mask[1] || mask[2] || mask[3]) {
    std::tie(to.first_values, to.logits, to.scale, to.shift) =
        gated_value_mix_backward(grads[0], in.first_values, in.logits, in.gate, in.scale, in.shift, mask);
  }
  return gradients_for(context, to);
}

struct GatedValueMix : torch::autograd::Function<GatedValueMix> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const In& in, at::TensorList /*tensors*/) {
    const at::AutoDispatchBelowADInplaceOrView below;
    at::Tensor mixed = call_gated_value_mix(in);
    save_for_gradients(context, in);
    return mixed;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return backward_of_mix(context, grads);
  }
};

struct GatedValueMixInPlace : torch::autograd::Function<GatedValueMixInPlace> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const In& in, at::TensorList /*tensors*/) {
    const at::AutoDispatchBelowADInplaceOrView below;
    call_gated_value_mix_in_place(in);
    save_for_gradients(context, in);
    context->mark_dirty({in.values});
    return in.values;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return backward_of_mix(context, grads);
  }
};

at::Tensor gated_value_mix_autograd(const In& in) {
  const std::vector<at::Tensor> tensors = tensors_of(in);
  return GatedValueMix::apply(in, at::TensorList(tensors));
}

// What the backward needs must not be overwritten. (The version counter cannot tell: it is read after the write.)
void check_not_overwritten(const char* name, const std::optional<at::Tensor>& saved, const at::Tensor& v) {
  if (!saved.has_value() || !saved->defined()) return;
  TORCH_CHECK(!saved->has_storage() || !v.has_storage() || !saved->is_alias_of(v), "gated_value_mix_: ", name,
              " is needed for the gradients but shares memory with v, which is overwritten; clone it or use "
              "gated_value_mix");
}

void gated_value_mix_in_place_autograd(const In& in) {
  In saved = in;
  saved.values = at::Tensor();
  const bool needs_saved = requires_grad(saved);
  // Before anything is written: apply() would refuse a leaf only after its values are gone.
  torch::autograd::check_inplace(in.values, in.values.requires_grad() || needs_saved);
  if (needs_saved && at::GradMode::is_enabled()) {
    check_not_overwritten("first_values", in.first_values, in.values);
    check_not_overwritten("logits", in.logits, in.values);
    check_not_overwritten("scale", in.scale, in.values);
    check_not_overwritten("shift", in.shift, in.values);
  }
  const std::vector<at::Tensor> tensors = tensors_of(in);
  GatedValueMixInPlace::apply(in, at::TensorList(tensors));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward_autograd(
    const In& in, std::array<bool, 4> output_mask) {
  if (at::GradMode::is_enabled() && requires_grad(in)) {
    return gated_value_mix_backward_reference(in.values, in.first_values, in.logits, in.gate, in.scale, in.shift,
                                              output_mask);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return gated_value_mix_backward(in.values, in.first_values, in.logits, in.gate, in.scale, in.shift, output_mask);
}

// Outside autograd (inference mode on ordinary tensors) the version counter must still see the write.
void gated_value_mix_in_place_version(const In& in) {
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    call_gated_value_mix_in_place(in);
  }
  torch::autograd::impl::bump_version(in.values);
}

at::Tensor cast_logits(const at::Tensor& logits, at::ScalarType values_dtype, c10::DeviceType device) {
  return logits.scalar_type() == at::kFloat ? logits : at::autocast::cached_cast(values_dtype, logits, device);
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
at::Tensor gated_value_mix_autocast(const In& inputs) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(kDevice);
  In in = inputs;
  in.values = at::autocast::cached_cast(dtype, inputs.values, kDevice);
  in.first_values = at::autocast::cached_cast(dtype, inputs.first_values, kDevice);
  in.logits = cast_logits(inputs.logits, in.values.scalar_type(), kDevice);
  return call_gated_value_mix(in);
}

// v is written, so its dtype decides.
template <c10::DispatchKey kKey, c10::DeviceType kDevice>
void gated_value_mix_in_place_autocast(const In& inputs) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  const at::ScalarType dtype = inputs.values.scalar_type();
  In in = inputs;
  in.first_values = at::autocast::cached_cast(dtype, inputs.first_values, kDevice);
  in.logits = cast_logits(inputs.logits, dtype, kDevice);
  call_gated_value_mix_in_place(in);
}

template <c10::DispatchKey kKey, c10::DeviceType kDevice>
void register_autocast(torch::Library& library) {
  implement<"gated_value_mix", &gated_value_mix_autocast<kKey, kDevice>>(library);
  implement<"gated_value_mix_", &gated_value_mix_in_place_autocast<kKey, kDevice>>(library);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;
  implement<"gated_value_mix", &gated_value_mix_autograd>(library);
  implement<"gated_value_mix_", &gated_value_mix_in_place_autograd>(library);
  implement<"gated_value_mix_backward", &gated_value_mix_backward_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  using namespace satformer::ops;
  implement<"gated_value_mix_", &gated_value_mix_in_place_version>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  satformer::ops::register_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCUDA, library) {
  satformer::ops::register_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>(library);
}
