#include "satformer/models/muddformer/model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <cmath>

#include "satformer/models/architecture_list.h"

namespace satformer::models {

MUDDBlockImpl::MUDDBlockImpl(const MUDDBlockOptions& options, const at::TensorOptions& tensors) {
  const nn::RMSNormOptions norm{options.attention.hidden_size, options.norm_eps};
  attn_norm_q = register_module("attn_norm_q", nn::RMSNorm(norm, tensors));
  attn_norm_k = register_module("attn_norm_k", nn::RMSNorm(norm, tensors));
  attn_norm_v = register_module("attn_norm_v", nn::RMSNorm(norm, tensors));
  attn = register_module("attn", nn::Attention(options.attention, nullptr, tensors));
  mlp_norm = register_module("mlp_norm", nn::RMSNorm(norm, tensors));
  mlp = register_module("mlp", nn::MLP(nn::MLPOptions{norm.size, options.intermediate_size}, tensors));
  da = register_module("da", nn::DepthAggregate(options.aggregate, tensors));
}

at::Tensor MUDDBlockImpl::forward(const nn::MuddInputs& inputs, const nn::LayerContext& context) {
  const nn::ResidualStream q{inputs.q}, k{inputs.k}, v{inputs.v};
  const nn::AttentionOutput attention =
      attn->forward({{q, attn_norm_q}, {k, attn_norm_k}, {v, attn_norm_v}}, {}, context);
  return mlp->forward({inputs.r, attention.hidden}, mlp_norm, context).value();
}

MUDDFormer::MUDDFormer(const ModelConfig& config, const c10::TensorOptions& tensors) : Decoder(config, tensors) {
  const std::int64_t layers = config.num_hidden_layers;
  nn::AttentionOptions attention = attention_options();
  attention.separate_sources = true;
  for (std::int64_t i = 0; i < layers; ++i) {
    const MUDDBlockOptions options{.attention = attention,
                                   .aggregate = {.hidden_size = config.hidden_size,
                                                 .num_sources = i + 2,
                                                 .num_ways = i + 1 < layers ? config.num_ways : 1,
                                                 .pre_post_norm = config.use_pre_post_da_norm,
                                                 .norm_eps = config.norm_eps},
                                   .intermediate_size = config.layer_intermediate_size(i),
                                   .norm_eps = config.norm_eps};
    blocks_.push_back(add_layer(i, MUDDBlock(options, tensors)));
  }
}

double MUDDFormer::initial_std(std::string_view name) const {
  const auto d = static_cast<double>(config().hidden_size);
  if (name.ends_with(".da.w1.weight")) return config().da_w1_init == "1/d" ? 1 / d : 1 / std::sqrt(d);
  if (name.ends_with(".da.w2.weight")) return 0.0;
  return Decoder::initial_std(name);
}

at::Tensor MUDDFormer::hidden_states(const ModelInput& input, nn::Observer* observer) {
  const at::Tensor x = embed(input);
  nn::LayerContext context = make_context(x, input, observer);
  nn::DepthHistory history(config().norm_eps, fused());
  history.add(x);
  nn::MuddInputs inputs{x, x, x, x};
  for (std::int64_t i = 0; i < num_layers(); ++i) {
    MUDDBlock& block = blocks_[static_cast<std::size_t>(i)];
    context.layer = i;
    const at::Tensor hidden = run(block, inputs, context);
    if (observer != nullptr) observer->hidden(i, hidden);
    history.add(hidden);
    inputs = block->da->forward(history, context);
    if (observer != nullptr && inputs.q.defined()) {
      observer->named(fmt::format("streams.{}", i), at::stack({inputs.q, inputs.k, inputs.v, inputs.r}));
    }
  }
  return final_norm({inputs.r}, observer);
}

std::shared_ptr<LanguageModel> make_muddformer(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<MUDDFormer>(config, tensors);
}

}  // namespace satformer::models
