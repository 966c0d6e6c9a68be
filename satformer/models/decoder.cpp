#include "satformer/models/decoder.h"

#include <fmt/ranges.h>

#include <string>

#include "satformer/core/error.h"
#include "satformer/nn/depth_aggregate.h"

namespace satformer::models {
namespace {

void check_ids(const at::Tensor& ids, const char* name, const at::Tensor& like) {
  require(ids.scalar_type() == at::kLong && ids.sizes() == like.sizes(),
          "model input: {} must be int64 [{}] like input_ids, got {} [{}]", name, fmt::join(like.sizes(), ", "),
          toString(ids.scalar_type()), fmt::join(ids.sizes(), ", "));
}

void check_input(const ModelInput& input) {
  require(input.input_ids.defined() && input.input_ids.dim() == 2, "model input: input_ids must be int64 [B, T]");
  check_ids(input.input_ids, "input_ids", input.input_ids);
  if (input.positions.defined()) check_ids(input.positions, "positions", input.input_ids);
  if (input.document_ids.defined()) check_ids(input.document_ids, "document_ids", input.input_ids);
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, const c10::TensorOptions& tensors) : LanguageModel(config) {
  const std::int64_t d = config.hidden_size, vocab_size = config.vocab_size;
  trunk_ = register_module("model", std::make_shared<torch::nn::Module>());
  embeddings_ = trunk_->register_module(
      "embeddings", nn::Embedding(nn::EmbeddingOptions{vocab_size, d, config.pad_token_id}, tensors));
  layers_ = trunk_->register_module("layers", std::make_shared<torch::nn::Module>());
  norm_ = trunk_->register_module("norm", nn::RMSNorm(nn::RMSNormOptions{d, config.norm_eps}, tensors));
  if (!config.tie_word_embeddings) {
    lm_head_ = register_module("lm_head", nn::Linear(nn::LinearOptions{d, vocab_size}, tensors));
  }
}

nn::AttentionOptions Decoder::attention_options() const {
  return {.hidden_size = config().hidden_size,
          .num_heads = config().num_heads,
          .num_kv_heads = config().num_kv_heads,
          .qkv_bias = config().qkv_bias,
          .qk_norm = config().qk_norm,
          .qk_norm_eps = config().qk_norm_eps};
}

at::Tensor Decoder::embed(const ModelInput& input) {
  check_input(input);
  return embeddings_->forward(input.input_ids);
}

nn::LayerContext Decoder::make_context(const at::Tensor& x, const ModelInput& input, nn::Observer* observer) const {
  const nn::AttentionContextOptions options{.head_dim = config().head_dim(),
                                            .rope_theta = config().rope_theta,
                                            .window_size = config().window_size,
                                            .fused = fused()};
  return {.attention = nn::make_attention_context(x, input.positions, input.document_ids, options),
          .fused = fused(),
          .observer = observer};
}

at::Tensor Decoder::final_norm(const nn::ResidualStream& x, nn::Observer* observer) {
  at::Tensor hidden = norm_->forward(x);
  if (observer != nullptr) observer->named("final_norm", hidden);
  return hidden;
}

BlockDecoder::BlockDecoder(const ModelConfig& config, const c10::TensorOptions& tensors, const MakeMixer& make_mixer)
    : Decoder(config, tensors) {
  nn::DecoderBlockOptions options{
      .attention = attention_options(), .intermediate_size = config.intermediate_size, .norm_eps = config.norm_eps};
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    options.attention.returns_values = i == 0 && !config.mixing_layers().empty();
    blocks_.push_back(add_layer(i, nn::DecoderBlock(options, make_mixer(i), tensors)));
  }
}

nn::DecoderBlockOutput BlockDecoder::run_block(const nn::DecoderBlockInput& input, const nn::LayerContext& context) {
  nn::DecoderBlockOutput output = run(blocks_[static_cast<std::size_t>(context.layer)], input, context);
  if (context.observer != nullptr) context.observer->hidden(context.layer, output.hidden.value());
  if (output.values.defined()) output.values = nn::for_later_layers(output.values, fused());
  return output;
}

at::Tensor ResidualDecoder::hidden_states(const ModelInput& input, nn::Observer* observer) {
  DecoderPass pass = begin(input, observer);
  while (pass.layer < num_layers()) advance(pass, observer);
  return finish(pass, observer);
}

DecoderPass ResidualDecoder::begin(const ModelInput& input, nn::Observer* observer) {
  const at::Tensor x = embed(input);
  return {.hidden = {x}, .context = make_context(x, input, observer).attention, .lambda1 = layer_lambda1(observer)};
}

void ResidualDecoder::advance(DecoderPass& pass, nn::Observer* observer, nn::Intervention* intervention) {
  const std::int64_t layer = pass.layer;
  require(layer < num_layers(), "decoder: layer {} of {} asked for", layer, num_layers());
  nn::DecoderBlockInput input{pass.hidden};
  if (config().mixes_values(layer)) {
    input.residual.first_values = pass.first_values;
    if (!pass.lambda1.empty()) input.residual.lambda1 = pass.lambda1[static_cast<std::size_t>(layer - 1)];
  }
  const nn::DecoderBlockOutput output = run_block(input, {.attention = pass.context,
                                                          .layer = layer,
                                                          .fused = fused(),
                                                          .observer = observer,
                                                          .intervention = intervention});
  pass.hidden = output.hidden;
  if (layer == 0) pass.first_values = output.values;
  ++pass.layer;
}

at::Tensor ResidualDecoder::finish(const DecoderPass& pass, nn::Observer* observer) {
  require(pass.layer == num_layers(), "decoder: a pass ends after layer {}, not before layer {}", num_layers() - 1,
          pass.layer);
  return final_norm(pass.hidden, observer);
}

}  // namespace satformer::models
