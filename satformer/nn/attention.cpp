#include "satformer/nn/attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>

#include "satformer/core/error.h"
#include "satformer/nn/plain_attention.h"

namespace satformer::nn {
namespace {

// The weights that the intervention gives become logits of an identity gate: the same pass applies them.
void replace_weights(fused::AttentionCall& call, const at::Tensor& replaced) {
  const ops::MixInputs inputs = fused::mix_inputs(call);
  if (call.selective) {
    inputs.logits.copy_(replaced);
  } else {
    inputs.v.mul_(inputs.lambda2.to(inputs.v.scalar_type()));
    at::Tensor& projected = call.projected.back();
    projected = at::cat({projected, replaced.to(projected.scalar_type())}, -1);
    call.mix.lambda1 = call.mix.lambda2 = at::Tensor();
    call.selective = true;
  }
  call.mix.gate = Gate::kIdentity;
}

void add_mix(fused::AttentionCall& call, const MixSpec& spec, const at::Tensor& first_values,
             const LayerContext& context) {
  call.selective = spec.gate.has_value();
  if (spec.gate) call.mix.gate = *spec.gate;
  call.mix.lambda1 = spec.lambda1;
  call.mix.lambda2 = spec.lambda2;
  call.mix.first_values = first_values;
  if (context.observer == nullptr && context.intervention == nullptr) return;
  const ops::MixInputs inputs = fused::mix_inputs(call);
  const RunningMix mix{spec, inputs.logits, inputs.v, first_values};
  show_mix(context, mix);
  const at::Tensor replaced = intervened_weights(context, mix);
  if (replaced.defined()) replace_weights(call, replaced);
}

}  // namespace

AttentionImpl::AttentionImpl(const AttentionOptions& options, std::shared_ptr<ValueMixer> mixer,
                             const at::TensorOptions& tensors)
    : options_(options) {
  const std::int64_t d = options.hidden_size, head_dim = options.head_dim();
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
  const Linear gate = value_residual_mixing ? value_residual_mixing->gate_projection() : Linear(nullptr);
  std::vector<Linear> last{v_proj};
  if (gate) last.push_back(gate);
  if (options.separate_sources) {
    projections_ = {packed_weight({q_proj}), packed_weight({k_proj}), packed_weight(last)};
  } else {
    last.insert(last.begin(), {q_proj, k_proj});
    projections_ = {packed_weight(last)};
  }
  output_ = packed_weight({o_proj});
}

AttentionOutput AttentionImpl::forward(const std::vector<AttentionSource>& sources, const ValueResidual& residual,
                                       const LayerContext& context) {
  require(sources.size() == projections_.size(), "attention: expected {} sources, got {}", projections_.size(),
          sources.size());
  require(!value_residual_mixing || residual.first_values.defined(),
          "attention: layer {} mixes values, but got no first_values", context.layer);
  return context.fused ? fused_forward(sources, residual, context) : plain_attention(*this, sources, residual, context);
}

AttentionOutput AttentionImpl::fused_forward(const std::vector<AttentionSource>& sources, const ValueResidual& residual,
                                             const LayerContext& context) {
  fused::AttentionCall call{.num_heads = options_.num_heads,
                            .num_kv_heads = options_.num_kv_heads,
                            .head_dim = options_.head_dim(),
                            .context = context.attention,
                            .returns_values = options_.returns_values};
  at::Tensor sum;
  for (std::size_t i = 0; i < projections_.size(); ++i) {
    const fused::NormLinearOutput read =
        fused::norm_linear(sources[i].stream, sources[i].norm->fused_norm(), projections_[i]);
    call.projected.push_back(read.y);
    if (i == 0) sum = read.sum;
  }
  if (options_.qk_norm) {
    call.mix.q_weight = q_norm->weight;
    call.mix.k_weight = k_norm->weight;
    call.mix.eps = options_.qk_norm_eps;
  }
  if (value_residual_mixing) add_mix(call, value_residual_mixing->spec(residual), residual.first_values, context);
  const fused::AttentionResult result = fused::attention(call);
  return {fused::packed_linear(result.attended, output_), sum, result.values};
}

}  // namespace satformer::nn
