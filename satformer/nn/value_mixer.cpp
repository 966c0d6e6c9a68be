#include "satformer/nn/value_mixer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include "csrc/ops/gated_value_mix_reference.h"
#include "satformer/core/error.h"
#include "satformer/runtime/compute_dtype.h"

namespace satformer::nn {

StaticMixerImpl::StaticMixerImpl(const StaticMixOptions& options, const at::TensorOptions& tensors) {
  lambda2 = register_parameter("lambda2", at::full({}, options.lambda2, tensors));
}

MixSpec StaticMixerImpl::spec(const ValueResidual& residual) const {
  require(residual.lambda1.defined(), "static value mixer: expected a lambda1, got none");
  return {.lambda1 = residual.lambda1, .lambda2 = lambda2};
}

MixSpec FixedMixerImpl::spec(const ValueResidual& residual) const {
  const at::Tensor& values = residual.first_values;
  const at::TensorOptions options = values.options().dtype(accumulate_dtype(values));
  return {.lambda1 = at::full({}, options_.lambda1, options), .lambda2 = at::full({}, options_.lambda2, options)};
}

SelectiveMixerImpl::SelectiveMixerImpl(const SelectiveMixOptions& options, const at::TensorOptions& tensors)
    : gate_(options.gate) {
  const LinearOptions projection{options.hidden_size, options.num_kv_heads, options.bias, /*decays=*/false};
  alpha_proj = register_module("alpha_proj", Linear(projection, tensors));
}

MixSpec SelectiveMixerImpl::spec(const ValueResidual& /*residual*/) const { return {.gate = gate_}; }

void show_mix(const LayerContext& context, const RunningMix& mix) {
  if (context.observer == nullptr) return;
  if (!mix.spec.gate) {
    context.observer->static_mix(context.layer, {mix.spec.lambda1, mix.spec.lambda2, mix.values, mix.first_values});
    return;
  }
  const at::Tensor alpha = ops::apply_gate(mix.logits, *mix.spec.gate);
  context.observer->gates(context.layer, {mix.logits, alpha, mix.values, mix.first_values});
}

at::Tensor intervened_weights(const LayerContext& context, const RunningMix& mix) {
  if (context.intervention == nullptr) return {};
  require(!at::GradMode::is_enabled(), "attention: interventions work without gradients only");
  const at::Tensor alpha = mix.spec.gate ? ops::apply_gate(mix.logits, *mix.spec.gate)
                                         : mix.spec.lambda1.expand(mix.values.sizes().slice(0, 3));
  return context.intervention->first_value_weights(context.layer, alpha);
}

}  // namespace satformer::nn
