#include "satformer/models/decoder.h"

#include <ATen/ops/linear.h>
#include <fmt/ranges.h>

#include <string>

#include "satformer/core/error.h"
#include "satformer/nn/checkpointing.h"

namespace satformer::models {
namespace {

nn::DecoderBlockOptions block_options(const ModelConfig& config) {
  return {.attention = {.hidden_size = config.hidden_size,
                        .num_heads = config.num_heads,
                        .num_kv_heads = config.num_kv_heads,
                        .qkv_bias = config.qkv_bias,
                        .qk_norm = config.qk_norm,
                        .qk_norm_eps = config.qk_norm_eps},
          .intermediate_size = config.intermediate_size,
          .norm_eps = config.norm_eps};
}

bool mixes_anywhere(const ModelConfig& config) {
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.mixes_values(layer)) return true;
  }
  return false;
}

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

Decoder::Decoder(const ModelConfig& config, const c10::TensorOptions& tensors, const MakeMixer& make_mixer)
    : LanguageModel(config), needs_first_values_(mixes_anywhere(config)) {
  const std::int64_t d = config.hidden_size, vocab_size = config.vocab_size;
  trunk_ = register_module("model", std::make_shared<torch::nn::Module>());
  embeddings_ = trunk_->register_module(
      "embeddings", nn::Embedding(nn::EmbeddingOptions{vocab_size, d, config.pad_token_id}, tensors));
  const auto layers = trunk_->register_module("layers", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.emplace_back(
        layers->register_module(std::to_string(i), nn::DecoderBlock(block_options(config), make_mixer(i), tensors)));
  }
  norm_ = trunk_->register_module("norm", nn::RMSNorm(nn::RMSNormOptions{d, config.norm_eps}, tensors));
  if (!config.tie_word_embeddings) {
    lm_head_ = register_module("lm_head", nn::Linear(nn::LinearOptions{d, vocab_size}, tensors));
  }
}

at::Tensor Decoder::logits(const at::Tensor& hidden) {
  return at::linear(hidden, lm_head_ ? lm_head_->weight : embeddings_->weight);
}

at::Tensor Decoder::embed(const ModelInput& input) {
  check_input(input);
  return embeddings_->forward(input.input_ids);
}

nn::Sequence Decoder::make_sequence(const at::Tensor& x, const ModelInput& input) const {
  return nn::make_sequence(
      x, input.positions, input.document_ids,
      {.head_dim = config().head_dim(), .rope_theta = config().rope_theta, .window_size = config().window_size});
}

nn::DecoderBlockOutput Decoder::run_layer(const nn::DecoderBlockInput& input) {
  // An observer is to see each value once, not again in the backward pass.
  const bool recompute = activation_checkpointing() && input.observer == nullptr;
  const auto layer = static_cast<std::size_t>(input.layer);
  nn::DecoderBlockOutput output = recompute ? run_checkpointed(input) : layers_[layer]->forward(input);
  if (input.layer > 0 || !needs_first_values_) output.values.reset();
  if (input.observer != nullptr) input.observer->hidden(input.layer, output.hidden);
  return output;
}

nn::DecoderBlockOutput Decoder::run_checkpointed(const nn::DecoderBlockInput& input) {
  nn::DecoderBlock block = layers_[static_cast<std::size_t>(input.layer)];
  const bool returns_values = input.layer == 0 && needs_first_values_;
  const bool mixes = config().mixes_values(input.layer);
  const nn::Segment segment = [block, sequence = input.sequence, layer = input.layer,
                               returns_values](const std::vector<at::Tensor>& inputs) mutable {
    const nn::DecoderBlockOutput output = block->forward({.hidden = inputs[0],
                                                          .first_values = inputs.size() > 1 ? inputs[1] : at::Tensor(),
                                                          .lambda1 = inputs.size() > 2 ? inputs[2] : at::Tensor(),
                                                          .sequence = sequence,
                                                          .layer = layer});
    return returns_values ? std::vector<at::Tensor>{output.hidden, output.values}
                          : std::vector<at::Tensor>{output.hidden};
  };
  std::vector<at::Tensor> inputs{input.hidden};
  if (mixes) inputs.push_back(input.first_values);
  if (mixes && input.lambda1.defined()) inputs.push_back(input.lambda1);
  const std::vector<at::Tensor> outputs = nn::checkpoint(segment, inputs, block->parameters());
  return {outputs[0], returns_values ? outputs[1] : at::Tensor()};
}

at::Tensor Decoder::final_norm(const at::Tensor& x, nn::Observer* observer) {
  at::Tensor hidden = norm_->forward(x);
  if (observer != nullptr) observer->named("final_norm", hidden);
  return hidden;
}

}  // namespace satformer::models
