#pragma once
// What the architectures share: embedding, pre-norm blocks, final norm, head. Parameter names are the checkpoint's.
#include <c10/core/TensorOptions.h>

#include <functional>
#include <memory>
#include <vector>

#include "satformer/models/language_model.h"
#include "satformer/nn/decoder_block.h"
#include "satformer/nn/embedding.h"

namespace satformer::models {

class Decoder : public LanguageModel {
 public:
  // h E^T, or h Whead^T when the embeddings are not tied.
  at::Tensor logits(const at::Tensor& hidden) override;

 protected:
  // The value mixer of a layer; null: none.
  using MakeMixer = std::function<std::shared_ptr<nn::ValueMixer>(std::int64_t layer)>;

  Decoder(const ModelConfig& config, const c10::TensorOptions& tensors, const MakeMixer& make_mixer);

  std::int64_t num_layers() const { return static_cast<std::int64_t>(layers_.size()); }
  // x = E[ids]; checks the input's shapes and dtypes.
  at::Tensor embed(const ModelInput& input);
  nn::Sequence make_sequence(const at::Tensor& x, const ModelInput& input) const;
  // One block, with activation checkpointing where that is on; shows its output to the observer. `values` is defined
  // for layer 0, where later layers need it.
  nn::DecoderBlockOutput run_layer(const nn::DecoderBlockInput& input);
  at::Tensor final_norm(const at::Tensor& x, nn::Observer* observer);

  // Holds everything whose name begins with "model.".
  torch::nn::Module& trunk() { return *trunk_; }

 private:
  nn::DecoderBlockOutput run_checkpointed(const nn::DecoderBlockInput& input);

  std::shared_ptr<torch::nn::Module> trunk_;
  nn::Embedding embeddings_{nullptr};
  std::vector<nn::DecoderBlock> layers_;
  nn::RMSNorm norm_{nullptr};
  nn::Linear lm_head_{nullptr};  // empty when tied
  bool needs_first_values_;
};

}  // namespace satformer::models
