#include "satformer/models/hyperconnections/model.h"

#include <fmt/format.h>

#include <cmath>

#include "satformer/models/architecture_list.h"

namespace satformer::models {

HyperConnectionBlockImpl::HyperConnectionBlockImpl(const nn::DecoderBlockOptions& options,
                                                   const nn::HyperConnectionOptions& attention,
                                                   const nn::HyperConnectionOptions& mlp_connection,
                                                   const at::TensorOptions& tensors) {
  const nn::RMSNormOptions norm{options.attention.hidden_size, options.norm_eps};
  attn_norm = register_module("attn_norm", nn::RMSNorm(norm, tensors));
  attn = register_module("attn", nn::Attention(options.attention, nullptr, tensors));
  attn_hc = register_module("attn_hc", nn::HyperConnection(attention, tensors));
  mlp_norm = register_module("mlp_norm", nn::RMSNorm(norm, tensors));
  mlp = register_module("mlp", nn::MLP(nn::MLPOptions{norm.size, options.intermediate_size}, tensors));
  mlp_hc = register_module("mlp_hc", nn::HyperConnection(mlp_connection, tensors));
}

at::Tensor HyperConnectionBlockImpl::forward(const at::Tensor& residual_streams, const nn::LayerContext& context) {
  const auto show = [&context](std::int64_t module, const nn::HyperConnectionUse& use) {
    if (context.observer == nullptr) return;
    context.observer->hyper_connection(2 * context.layer + module,
                                       {nn::HyperConnectionImpl::alpha(use), use.read.beta});
  };
  nn::HyperConnectionUse attention{residual_streams, attn_hc->parameters, attn_hc->read(residual_streams, context)};
  show(0, attention);
  const nn::ResidualStream attention_input{attention.read.input};
  const at::Tensor attended = attn->forward({{attention_input, attn_norm}}, {}, context).hidden;
  nn::HyperConnectionUse feed_forward = nn::write_and_read(attention, attended, mlp_hc, context);
  show(1, feed_forward);
  const at::Tensor fed = mlp->forward({feed_forward.read.input}, mlp_norm, context).pending;
  return nn::HyperConnectionImpl::write(feed_forward.read, fed, context);
}

HyperConnections::HyperConnections(const ModelConfig& config, const c10::TensorOptions& tensors)
    : Decoder(config, tensors) {
  const nn::DecoderBlockOptions options{
      .attention = attention_options(), .intermediate_size = config.intermediate_size, .norm_eps = config.norm_eps};
  nn::HyperConnectionOptions connection{.hidden_size = config.hidden_size,
                                        .expansion_rate = config.expansion_rate,
                                        .dynamic = config.use_dynamic_hc,
                                        .use_tanh = config.use_tanh,
                                        .layer_norm = config.hc_norm_type == "layer"};
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    nn::HyperConnectionOptions attention = connection, mlp = connection;
    attention.index = 2 * i;
    mlp.index = 2 * i + 1;
    blocks_.push_back(add_layer(i, HyperConnectionBlock(options, attention, mlp, tensors)));
  }
}

double HyperConnections::initial_std(std::string_view name) const {
  const double std = Decoder::initial_std(name);
  const bool writes = name.ends_with(".o_proj.weight") || name.ends_with(".down_proj.weight");
  return writes ? std / std::sqrt(static_cast<double>(config().expansion_rate)) : std;
}

at::Tensor HyperConnections::hidden_states(const ModelInput& input, nn::Observer* observer) {
  const at::Tensor x = embed(input);
  nn::LayerContext context = make_context(x, input, observer);
  at::Tensor residual_streams = x.unsqueeze(2).repeat({1, 1, config().expansion_rate, 1});
  for (std::int64_t i = 0; i < num_layers(); ++i) {
    context.layer = i;
    residual_streams = run(blocks_[static_cast<std::size_t>(i)], residual_streams, context);
    if (observer == nullptr) continue;
    observer->hidden(i, residual_streams.sum(2));
    observer->named(fmt::format("hyper.{}", i), residual_streams);
  }
  return final_norm({residual_streams.sum(2)}, observer);
}

std::shared_ptr<LanguageModel> make_hyperconnections(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<HyperConnections>(config, tensors);
}

}  // namespace satformer::models
