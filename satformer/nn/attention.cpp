#include "satformer/nn/attention.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>

#include "csrc/ops/gated_value_mix_reference.h"
#include "satformer/core/error.h"
#include "satformer/fused/attention_core.h"

namespace satformer::nn {

AttentionImpl::AttentionImpl(const AttentionOptions& options, std::shared_ptr<ValueMixer> mixer,
                             const at::TensorOptions& tensors)
    : options_(options) {
  const std::int64_t d = options.hidden_size, head_dim = d / options.num_heads;
  const std::int64_t kv_size = options.num_kv_heads * head_dim;
  q_proj = register_module("q_proj", Linear(LinearOptions{d, d, options.qkv_bias}, tensors));
  k_proj = register_module("k_proj", Linear(LinearOptions{d, kv_size, options.qkv_bias}, tensors));
  v_proj = register_module("v_proj", Linear(LinearOptions{d, kv_size, options.qkv_bias}, tensors));
  o_proj = register_module("o_proj", Linear(LinearOptions{d, d}, tensors));
  if (options.qk_norm) {
    q_norm = register_module("q_norm", RMSNorm(RMSNormOptions{head_dim, options.qk_norm_eps}, tensors));
    k_norm = register_module("k_norm", RMSNorm(RMSNormOptions{head_dim, options.qk_norm_eps}, tensors));
  }
  if (mixer) value_residual_mixing = register_module("value_residual_mixing", std::move(mixer));
  std::vector<Linear> last{v_proj};
  if (value_residual_mixing) {
    const Linear gate = value_residual_mixing->gate_projection();
    if (gate) last.push_back(gate);
  }
  if (options.separate_sources) {
    projections_ = {PackedWeight({q_proj}), PackedWeight({k_proj}), PackedWeight(last)};
  } else {
    last.insert(last.begin(), {q_proj, k_proj});
    projections_ = {PackedWeight(last)};
  }
  output_ = PackedWeight({o_proj});
}

AttentionOutput AttentionImpl::forward(const AttentionInput& input) {
  require(input.sources.size() == projections_.size(), "attention: expected {} sources, got {}", projections_.size(),
          input.sources.size());
  require(!value_residual_mixing || input.first_values.defined(),
          "attention: layer {} mixes values, but got no first_values", input.layer);
  AttentionCore core{.num_heads = options_.num_heads,
                     .num_kv_heads = options_.num_kv_heads,
                     .head_dim = options_.hidden_size / options_.num_heads,
                     .mask = input.sequence.mask,
                     .documents = input.sequence.documents,
                     .window_size = input.sequence.window_size,
                     .returns_values = input.returns_values};
  at::Tensor sum;
  for (std::size_t i = 0; i < projections_.size(); ++i) {
    const NormLinearOutput read = norm_linear(input.sources[i].stream, input.sources[i].norm, projections_[i]);
    core.projected.push_back(read.y);
    if (i == 0) sum = read.sum;
  }
  core.inputs.cos = input.sequence.rotary.cos;
  core.inputs.sin = input.sequence.rotary.sin;
  if (options_.qk_norm) {
    core.inputs.q_weight = q_norm->weight;
    core.inputs.k_weight = k_norm->weight;
    core.inputs.eps = options_.qk_norm_eps;
  }
  if (value_residual_mixing) {
    core.selective = static_cast<bool>(value_residual_mixing->gate_projection());
    core.inputs.q = core.projected.front();
    value_residual_mixing->describe(core.inputs, input.lambda1);
    core.inputs.first_values = input.first_values;
    if (input.observer != nullptr) observe(input, core);
    if (input.intervention != nullptr) intervene(input, core);
  }
  const AttentionCoreOutput output = attention_core(core);
  return {packed_linear(output.attended, output_), sum, output.values};
}

void AttentionImpl::observe(const AttentionInput& input, const AttentionCore& core) {
  ops::MixInputs inputs = core.inputs;
  view_projections(core.projected, core, inputs);
  if (!core.selective) {
    input.observer->static_mix(input.layer, {inputs.lambda1, inputs.lambda2, inputs.v, input.first_values});
    return;
  }
  const at::Tensor alpha = ops::apply_gate(inputs.logits, inputs.gate);
  input.observer->gates(input.layer, {inputs.logits, alpha, inputs.v, input.first_values});
}

// The weights that the intervention gives become logits of an identity gate: the same pass as ever applies them.
void AttentionImpl::intervene(const AttentionInput& input, AttentionCore& core) {
  require(!at::GradMode::is_enabled(), "attention: interventions work without gradients only");
  ops::MixInputs inputs = core.inputs;
  view_projections(core.projected, core, inputs);
  const at::Tensor alpha = core.selective ? ops::apply_gate(inputs.logits, inputs.gate)
                                          : inputs.lambda1.expand(inputs.v.sizes().slice(0, 3));
  const at::Tensor replaced = input.intervention->first_value_weights(input.layer, alpha);
  if (!replaced.defined()) return;
  if (core.selective) {
    inputs.logits.copy_(replaced);
  } else {
    inputs.v.mul_(inputs.lambda2.to(inputs.v.scalar_type()));
    at::Tensor& projected = core.projected.back();
    projected = at::cat({projected, replaced.to(projected.scalar_type())}, -1);
    core.inputs.lambda1 = core.inputs.lambda2 = at::Tensor();
    core.selective = true;
  }
  core.inputs.gate = Gate::kIdentity;
}

}  // namespace satformer::nn
