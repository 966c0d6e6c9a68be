#include "satformer/nn/value_mixer.h"

#include <ATen/ops/full.h>

#include "satformer/core/error.h"
#include "satformer/runtime/compute_dtype.h"

namespace satformer::nn {

StaticMixerImpl::StaticMixerImpl(const StaticMixOptions& options, const at::TensorOptions& tensors) {
  lambda2 = register_parameter("lambda2", at::full({}, options.lambda2, tensors));
}

void StaticMixerImpl::describe(ops::MixInputs& inputs, const at::Tensor& lambda1) const {
  require(lambda1.defined(), "static value mixer: got no lambda1");
  inputs.lambda1 = lambda1;
  inputs.lambda2 = lambda2;
}

void FixedMixerImpl::describe(ops::MixInputs& inputs, const at::Tensor& /*lambda1*/) const {
  const at::TensorOptions options = inputs.q.options().dtype(accumulate_dtype(inputs.q));
  inputs.lambda1 = at::full({}, options_.lambda1, options);
  inputs.lambda2 = at::full({}, options_.lambda2, options);
}

SelectiveMixerImpl::SelectiveMixerImpl(const SelectiveMixOptions& options, const at::TensorOptions& tensors)
    : gate_(options.gate) {
  const LinearOptions projection{options.hidden_size, options.num_kv_heads, options.bias, /*decays=*/false};
  alpha_proj = register_module("alpha_proj", Linear(projection, tensors));
}

void SelectiveMixerImpl::describe(ops::MixInputs& inputs, const at::Tensor& /*lambda1*/) const { inputs.gate = gate_; }

}  // namespace satformer::nn
