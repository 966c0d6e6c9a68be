#include "satformer/nn/decoder_block.h"

namespace satformer::nn {

DecoderBlockImpl::DecoderBlockImpl(const DecoderBlockOptions& options, std::shared_ptr<ValueMixer> mixer,
                                   const at::TensorOptions& tensors) {
  const std::int64_t d = options.attention.hidden_size;
  attn_norm = register_module("attn_norm", RMSNorm(RMSNormOptions{d, options.norm_eps}, tensors));
  attn = register_module("attn", Attention(options.attention, std::move(mixer), tensors));
  mlp_norm = register_module("mlp_norm", RMSNorm(RMSNormOptions{d, options.norm_eps}, tensors));
  mlp = register_module("mlp", MLP(MLPOptions{d, options.intermediate_size}, tensors));
}

DecoderBlockOutput DecoderBlockImpl::forward(const DecoderBlockInput& input) {
  const AttentionOutput attention = attn->forward({.sources = {{input.hidden, attn_norm}},
                                                   .first_values = input.first_values,
                                                   .lambda1 = input.lambda1,
                                                   .sequence = input.sequence,
                                                   .layer = input.layer,
                                                   .returns_values = input.returns_values,
                                                   .observer = input.observer,
                                                   .intervention = input.intervention});
  return {mlp->forward({attention.sum, attention.hidden}, mlp_norm), attention.values};
}

}  // namespace satformer::nn
