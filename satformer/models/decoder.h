#pragma once
// What the architectures share: embedding, a stack of layers, final norm, head. Parameter names are the checkpoint's.
#include <c10/core/TensorOptions.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "satformer/fused/recompute.h"
#include "satformer/models/language_model.h"
#include "satformer/nn/decoder_block.h"
#include "satformer/nn/embedding.h"

namespace satformer::models {

class Decoder : public LanguageModel {
 public:
  // E, or Whead when the embeddings are not tied.
  at::Tensor head_weight() const override { return lm_head_ ? lm_head_->weight : embeddings_->weight; }

 protected:
  Decoder(const ModelConfig& config, const c10::TensorOptions& tensors);

  std::int64_t num_layers() const { return config().num_hidden_layers; }
  nn::AttentionOptions attention_options() const;

  // Registers a layer as model.layers.INDEX and returns it.
  template <typename Layer>
  Layer add_layer(std::int64_t index, const Layer& layer) {
    return layers_->register_module(std::to_string(index), layer);
  }

  // x = E[ids]; checks the input's shapes and dtypes.
  at::Tensor embed(const ModelInput& input);
  // What layer 0 is told; x is the embedding.
  nn::LayerContext make_context(const at::Tensor& x, const ModelInput& input, nn::Observer* observer) const;
  // layer->forward(input, context); with activation checkpointing the layer's activations are not kept but computed
  // again in the backward pass. An observer is to see each value once, so with one everything is kept.
  template <typename Layer, typename Input>
  auto run(Layer& layer, const Input& input, const nn::LayerContext& context) const {
    const bool keeps = !activation_checkpointing() || context.observer != nullptr;
    return keeps ? layer->forward(input, context) : fused::recompute_layer(layer, input, context);
  }
  at::Tensor final_norm(const nn::ResidualStream& x, nn::Observer* observer);

  // Holds everything whose name begins with "model.".
  torch::nn::Module& trunk() { return *trunk_; }

 private:
  std::shared_ptr<torch::nn::Module> trunk_, layers_;
  nn::Embedding embeddings_{nullptr};
  nn::RMSNorm norm_{nullptr};
  nn::Linear lm_head_{nullptr};  // empty when tied
};

// A decoder whose layers are pre-norm blocks on one residual stream.
class BlockDecoder : public Decoder {
 protected:
  // The value mixer of a layer; null: none.
  using MakeMixer = std::function<std::shared_ptr<nn::ValueMixer>(std::int64_t layer)>;

  BlockDecoder(const ModelConfig& config, const c10::TensorOptions& tensors, const MakeMixer& make_mixer);

  // Block context.layer; shows its output to the observer. `values` is defined for layer 0, where later layers need it.
  nn::DecoderBlockOutput run_block(const nn::DecoderBlockInput& input, const nn::LayerContext& context);

 private:
  std::vector<nn::DecoderBlock> blocks_;
};

// A pass through a ResidualDecoder that has come to `layer`: all that this and the later layers read. A copy shares the
// tensors and can go on by itself.
struct DecoderPass {
  nn::ResidualStream hidden;
  nn::AttentionContext context;
  at::Tensor first_values = {};          // [B, T, H_kv, hd] after layer 0, where a layer mixes values
  std::vector<at::Tensor> lambda1 = {};  // [] of layers 1 .. L-1; empty where no mixer is learnable and static
  std::int64_t layer = 0;
};

// A decoder whose layers hand on one residual stream and, from the first layer to all others, its values:
//   x = E[ids];  x, v1 = block_0(x);  x = block_i(x, v1) for i = 1 .. L-1;  h = norm(x)
// A pass can be stopped before any layer.
class ResidualDecoder : public BlockDecoder {
 public:
  at::Tensor hidden_states(const ModelInput& input, nn::Observer* observer = nullptr) override;

  DecoderPass begin(const ModelInput& input, nn::Observer* observer = nullptr);
  // Runs one layer.
  void advance(DecoderPass& pass, nn::Observer* observer = nullptr, nn::Intervention* intervention = nullptr);
  // After the last layer: the final norm's output [B, T, d].
  at::Tensor finish(const DecoderPass& pass, nn::Observer* observer = nullptr);

 protected:
  using BlockDecoder::BlockDecoder;

 private:
  // DecoderPass::lambda1.
  virtual std::vector<at::Tensor> layer_lambda1(nn::Observer* observer) const {
    (void)observer;
    return {};
  }
};

}  // namespace satformer::models
