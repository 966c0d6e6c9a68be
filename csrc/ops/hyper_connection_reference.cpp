#include "csrc/ops/hyper_connection_reference.h"
#include "csrc/ops/row_arguments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/tanh.h>

namespace satformer::ops {
namespace {

at::Tensor normalized(const at::Tensor& streams, const HyperConnection& p) {
  const at::Tensor weight = p.norm_weight->to(streams.scalar_type());
  const at::Tensor x = p.norm_bias ? streams - streams.mean(-1, /*keepdim=*/true) : streams;
  const at::Tensor scaled = x * at::rsqrt((x * x).mean(-1, /*keepdim=*/true) + p.norm_eps) * weight;
  return p.norm_bias ? scaled + p.norm_bias->to(streams.scalar_type()) : scaled;
}

}  // namespace

HyperConnectionRead hyper_connection_read_reference(const at::Tensor& streams, const HyperConnection& p) {
  const at::ScalarType stored = streams.scalar_type(), dtype = accumulate_dtype(stored);
  const at::Tensor x = streams.to(dtype);
  at::Tensor alpha = p.static_alpha.to(dtype), beta = p.static_beta.to(dtype);
  if (p.norm_weight) {
    const at::Tensor n = normalized(x, p);
    const auto bounded = [&p](const at::Tensor& logits) { return p.use_tanh ? at::tanh(logits) : logits; };
    alpha = alpha + p.dynamic_alpha_scale->to(dtype) * bounded(at::matmul(n, p.dynamic_alpha_proj->to(dtype)));
    beta = beta + p.dynamic_beta_scale->to(dtype) * bounded(at::matmul(n, p.dynamic_beta_proj->to(dtype)));
  }
  const at::Tensor mixed = at::matmul(alpha.transpose(-2, -1), x).to(stored);
  return {mixed.select(2, 0), mixed.slice(2, 1), beta.expand({x.size(0), x.size(1), x.size(2)}), {}};
}

at::Tensor hyper_connection_write_reference(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  const at::ScalarType dtype = accumulate_dtype(mixed);
  return (mixed.to(dtype) + beta.to(dtype).unsqueeze(-1) * out.to(dtype).unsqueeze(2)).to(mixed.scalar_type());
}

}  // namespace satformer::ops
