#include "satformer/fused/attention_libtorch.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <optional>

namespace satformer::fused::libtorch {
namespace {

std::optional<at::Tensor> optional(const at::Tensor& mask) {
  return mask.defined() ? std::optional(mask) : std::nullopt;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend_cpu(const ops::MixOutputs& in, const at::Tensor& mask) {
  if (in.q.numel() == 0) return {in.q, in.q};  // the kernel divides by the sizes
  auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      in.q.transpose(1, 2), in.k.transpose(1, 2), in.v.transpose(1, 2), /*dropout_p=*/0,
      /*is_causal=*/!mask.defined(), optional(mask));
  return {output.transpose(1, 2), logsumexp};
}

ops::MixOutputs attend_cpu_backward(const at::Tensor& grad, const ops::MixOutputs& in, const at::Tensor& output,
                                    const at::Tensor& logsumexp, const at::Tensor& mask) {
  if (in.q.numel() == 0) return {in.q, in.k, in.v};
  const auto [q, k, v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad.transpose(1, 2), in.q.transpose(1, 2), in.k.transpose(1, 2), in.v.transpose(1, 2), output.transpose(1, 2),
      logsumexp, /*dropout_p=*/0, /*is_causal=*/!mask.defined(), optional(mask));
  return {q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)};
}

at::Tensor attend(const ops::MixOutputs& in, const at::Tensor& mask) {
  const at::Tensor attended = at::scaled_dot_product_attention(
      in.q.transpose(1, 2), in.k.transpose(1, 2), in.v.transpose(1, 2), optional(mask), /*dropout_p=*/0,
      /*is_causal=*/!mask.defined(), /*scale=*/std::nullopt, /*enable_gqa=*/in.q.size(2) != in.k.size(2));
  return attended.transpose(1, 2);
}

}  // namespace satformer::fused::libtorch
