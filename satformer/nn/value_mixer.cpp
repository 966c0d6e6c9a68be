#include "satformer/nn/value_mixer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/gated_value_mix_reference.h"
#include "satformer/core/error.h"

namespace satformer::nn {

StaticMixerImpl::StaticMixerImpl(const StaticMixOptions& options, const at::TensorOptions& tensors) {
  lambda2 = register_parameter("lambda2", at::full({}, options.lambda2, tensors));
}

at::Tensor StaticMixerImpl::forward(const ValueMixInput& input) {
  require(input.lambda1.defined(), "static value mixer: layer {} got no lambda1", input.layer);
  return input.lambda1 * input.first_values + lambda2 * input.values;
}

at::Tensor FixedMixerImpl::forward(const ValueMixInput& input) {
  return options_.lambda1 * input.first_values + options_.lambda2 * input.values;
}

SelectiveMixerImpl::SelectiveMixerImpl(const SelectiveMixOptions& options, const at::TensorOptions& tensors)
    : gate_(options.gate) {
  const LinearOptions projection{options.hidden_size, options.num_kv_heads, options.bias};
  alpha_proj = register_module("alpha_proj", Linear(projection, tensors));
}

at::Tensor SelectiveMixerImpl::forward(const ValueMixInput& input) {
  const at::Tensor logits = alpha_proj->forward(input.hidden);
  if (input.observer != nullptr) {
    const at::Tensor alpha = ops::apply_gate(logits, gate_);
    input.observer->gates(input.layer, {logits, alpha, input.values, input.first_values});
  }
  return ops::gated_value_mix(input.values, input.first_values, logits, gate_);
}

}  // namespace satformer::nn
