#include "satformer/nn/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include "satformer/core/error.h"

namespace satformer::nn {

AttentionImpl::AttentionImpl(const AttentionOptions& options, std::shared_ptr<ValueMixer> mixer,
                             const at::TensorOptions& tensors)
    : head_dim_(options.hidden_size / options.num_heads), grouped_(options.num_kv_heads != options.num_heads) {
  const std::int64_t d = options.hidden_size, kv_size = options.num_kv_heads * head_dim_;
  q_proj = register_module("q_proj", Linear(LinearOptions{d, d, options.qkv_bias}, tensors));
  k_proj = register_module("k_proj", Linear(LinearOptions{d, kv_size, options.qkv_bias}, tensors));
  v_proj = register_module("v_proj", Linear(LinearOptions{d, kv_size, options.qkv_bias}, tensors));
  o_proj = register_module("o_proj", Linear(LinearOptions{d, d}, tensors));
  if (options.qk_norm) {
    q_norm = register_module("q_norm", RMSNorm(RMSNormOptions{head_dim_, options.qk_norm_eps}, tensors));
    k_norm = register_module("k_norm", RMSNorm(RMSNormOptions{head_dim_, options.qk_norm_eps}, tensors));
  }
  if (mixer) value_residual_mixing = register_module("value_residual_mixing", std::move(mixer));
}

AttentionOutput AttentionImpl::forward(const AttentionInput& input) {
  at::Tensor q = split_heads(q_proj->forward(input.q_source));
  at::Tensor k = split_heads(k_proj->forward(input.k_source));
  const at::Tensor values = split_heads(v_proj->forward(input.v_source));
  const at::Tensor mixed_values = value_residual_mixing ? mix_values(values, input) : values;
  if (q_norm) {
    q = q_norm->forward(q);
    k = k_norm->forward(k);
  }
  q = apply_rotary(q, input.sequence.rotary);
  k = apply_rotary(k, input.sequence.rotary);
  return {o_proj->forward(attend(q, k, mixed_values, input.sequence.mask)), values};
}

// [B, T, H hd] -> [B, T, H, hd]
at::Tensor AttentionImpl::split_heads(const at::Tensor& x) const { return x.unflatten(-1, {-1, head_dim_}); }

at::Tensor AttentionImpl::mix_values(const at::Tensor& values, const AttentionInput& input) {
  require(input.first_values.defined(), "attention: layer {} mixes values, but got no first_values", input.layer);
  return value_residual_mixing->forward({.values = values,
                                         .first_values = input.first_values,
                                         .hidden = input.v_source,
                                         .lambda1 = input.lambda1,
                                         .layer = input.layer,
                                         .observer = input.observer});
}

// [B, T, H, hd] each -> [B, T, H hd]. The kernels read the transposed views as they are, and their output's memory is
// [B, T, H, hd] again: nothing is copied.
at::Tensor AttentionImpl::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const at::Tensor& mask) const {
  const std::optional<at::Tensor> bias = mask.defined() ? std::optional(mask) : std::nullopt;
  const at::Tensor attended =
      at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), bias, /*dropout_p=*/0,
                                       /*is_causal=*/!bias, /*scale=*/std::nullopt, grouped_);
  return attended.transpose(1, 2).flatten(-2);
}

}  // namespace satformer::nn
