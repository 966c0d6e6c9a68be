#include "satformer/nn/plain_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/cat.h>

#include <optional>
#include <tuple>

#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/rms_norm.h"
#include "satformer/nn/rotary.h"
#include "satformer/runtime/compute_dtype.h"

namespace satformer::nn {
namespace {

at::Tensor in_arithmetic_dtype(const at::Tensor& x) { return x.to(accumulate_dtype(x)); }

// [B, T, heads hd] -> [B, T, heads, hd]
at::Tensor split_heads(const at::Tensor& x, std::int64_t head_dim) { return x.unflatten(-1, {-1, head_dim}); }

// (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), the halves of a head.
at::Tensor rotate(const at::Tensor& x, const RotaryTables& tables) {
  const at::Tensor x1 = x.chunk(2, -1)[0], x2 = x.chunk(2, -1)[1];
  return at::cat({x1 * tables.cos - x2 * tables.sin, x2 * tables.cos + x1 * tables.sin}, -1);
}

// RoPE(RMSNorm(x)), or RoPE(x) where `norm` is empty; float32 or float64 in between, one rounding.
at::Tensor norm_and_rotate(const at::Tensor& x, const RMSNorm& norm, const RotaryTables& tables) {
  const at::Tensor normalized =
      norm ? std::get<0>(ops::rms_norm(x, norm->weight, norm->eps(), accumulate_dtype(x))) : in_arithmetic_dtype(x);
  return rotate(normalized, tables).to(x.scalar_type());
}

// v' = lambda1 v1 + lambda2 v
at::Tensor static_mix(const at::Tensor& v, const at::Tensor& first_values, const MixSpec& spec) {
  const at::Tensor mixed = spec.lambda1 * in_arithmetic_dtype(first_values) + spec.lambda2 * in_arithmetic_dtype(v);
  return mixed.to(v.scalar_type());
}

// What attention reads in place of v [B, T, H_kv, hd]; u is what Wv read.
at::Tensor mix_values(AttentionImpl& attention, const at::Tensor& u, const at::Tensor& v, const ValueResidual& residual,
                      const LayerContext& context) {
  ValueMixer& mixer = *attention.value_residual_mixing;
  const MixSpec spec = mixer.spec(residual);
  const at::Tensor& v1 = residual.first_values;
  const at::Tensor logits = spec.gate ? mixer.gate_projection()->forward(u) : at::Tensor();
  const RunningMix mix{spec, logits, v, v1};
  show_mix(context, mix);
  const at::Tensor replaced = intervened_weights(context, mix);
  if (replaced.defined()) {
    const at::Tensor kept = spec.gate ? v : v * spec.lambda2.to(v.scalar_type());
    return ops::gated_value_mix(kept, v1, replaced.to(v.scalar_type()), Gate::kIdentity);
  }
  return spec.gate ? ops::gated_value_mix(v, v1, logits, *spec.gate) : static_mix(v, v1, spec);
}

// softmax(q k^T / sqrt(hd) + mask) v, [B, T, H hd]. LibTorch's composite definition: the kernels that
// scaled_dot_product_attention would choose have no second derivatives.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) {
  const std::optional<at::Tensor> bias = mask.defined() ? std::optional(mask) : std::nullopt;
  const at::Tensor attended = std::get<0>(at::_scaled_dot_product_attention_math(
      q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), bias, /*dropout_p=*/0, /*is_causal=*/!bias,
      /*dropout_mask=*/{}, /*scale=*/{}, /*enable_gqa=*/q.size(2) != k.size(2)));
  return attended.transpose(1, 2).flatten(-2);
}

}  // namespace

AttentionOutput plain_attention(AttentionImpl& attention, const std::vector<AttentionSource>& sources,
                                const ValueResidual& residual, const LayerContext& context) {
  const AttentionOptions& options = attention.options();
  const AttentionContext& shared = context.attention;
  const at::Tensor sum = sources.front().stream.value();
  const at::Tensor uq = sources.front().norm->forward(sum);
  const bool separate = options.separate_sources;
  const at::Tensor uk = separate ? sources[1].norm->forward(sources[1].stream) : uq;
  const at::Tensor uv = separate ? sources[2].norm->forward(sources[2].stream) : uq;

  at::Tensor q = split_heads(attention.q_proj->forward(uq), options.head_dim());
  at::Tensor k = split_heads(attention.k_proj->forward(uk), options.head_dim());
  const at::Tensor v = split_heads(attention.v_proj->forward(uv), options.head_dim());
  q = norm_and_rotate(q, attention.q_norm, shared.rotary);
  k = norm_and_rotate(k, attention.k_norm, shared.rotary);
  const at::Tensor mixed = attention.value_residual_mixing ? mix_values(attention, uv, v, residual, context) : v;
  const at::Tensor attended = attend(q, k, mixed, shared.mask);
  return {attention.o_proj->forward(attended), sum, options.returns_values ? v : at::Tensor()};
}

}  // namespace satformer::nn
