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

DecoderBlockOutput DecoderBlockImpl::forward(const DecoderBlockInput& input, const LayerContext& context) {
  const AttentionOutput attention = attn->forward({{input.hidden, attn_norm}}, input.residual, context);
  return {mlp->forward({attention.sum, attention.hidden}, mlp_norm, context), attention.values};
}

}  // namespace satformer::nn
