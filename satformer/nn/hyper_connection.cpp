#include "satformer/nn/hyper_connection.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "csrc/ops/hyper_connection_reference.h"
#include "satformer/fused/no_autocast.h"

namespace satformer::nn {
HyperConnectionImpl::HyperConnectionImpl(const HyperConnectionOptions& options, const at::TensorOptions& tensors) {
  const std::int64_t d = options.hidden_size, n = options.expansion_rate;
  at::Tensor alpha = at::zeros({n, n + 1}, tensors);
  if (!alpha.is_meta()) {
    alpha.slice(1, 1).copy_(at::eye(n, tensors));
    alpha[options.index % n][0].fill_(1.0);
  }
  parameters.static_alpha = register_parameter("static_alpha", alpha);
  parameters.static_beta = register_parameter("static_beta", at::ones({n}, tensors));
  if (!options.dynamic) return;
  parameters.use_tanh = options.use_tanh;
  parameters.norm_eps = options.norm_eps();
  parameters.dynamic_alpha_proj = register_parameter("dynamic_alpha_proj", at::zeros({d, n + 1}, tensors));
  parameters.dynamic_beta_proj = register_parameter("dynamic_beta_proj", at::zeros({d}, tensors));
  parameters.dynamic_alpha_scale = register_parameter("dynamic_alpha_scale", at::full({1}, 0.01, tensors));
  parameters.dynamic_beta_scale = register_parameter("dynamic_beta_scale", at::full({1}, 0.01, tensors));
  const auto norm = register_module("norm", std::make_shared<torch::nn::Module>());
  parameters.norm_weight = norm->register_parameter("weight", at::ones({d}, tensors));
  if (options.layer_norm) parameters.norm_bias = norm->register_parameter("bias", at::zeros({d}, tensors));
}

HyperConnectionRead HyperConnectionImpl::read(const at::Tensor& residual_streams, const LayerContext& context) const {
  if (context.fused) return ops::hyper_connection_read(residual_streams, parameters);
  const fused::NoAutocast no_autocast(residual_streams.device().type());
  return ops::hyper_connection_read_reference(residual_streams, parameters);
}

at::Tensor HyperConnectionImpl::alpha(const HyperConnectionUse& use) {
  const ops::HyperConnection& p = use.parameters;
  const std::int64_t n = p.static_alpha.size(0);
  const std::vector<std::int64_t> sizes{use.read.beta.size(0), use.read.beta.size(1), n, n + 1};
  if (!p.dynamic_alpha_scale) return p.static_alpha.expand(sizes);
  const at::Tensor kept =
      use.read.kept.defined() ? use.read.kept : ops::hyper_connection_read(use.residual_streams, p).kept;
  const at::Tensor logits = kept.slice(-1, 0, n + 1);
  return p.static_alpha + *p.dynamic_alpha_scale * (p.use_tanh ? at::tanh(logits) : logits);
}

at::Tensor HyperConnectionImpl::write(HyperConnectionRead& read, const at::Tensor& output,
                                      const LayerContext& context) {
  if (context.fused) return ops::hyper_connection_write_(read.mixed, read.beta, output);
  return ops::hyper_connection_write_reference(read.mixed, read.beta, output);
}

HyperConnectionUse write_and_read(HyperConnectionUse& use, const at::Tensor& output, const HyperConnection& next,
                                  const LayerContext& context) {
  if (context.fused) return {{}, next->parameters, fused::write_and_read(use, output, next->parameters)};
  const at::Tensor residual_streams = HyperConnectionImpl::write(use.read, output, context);
  return {residual_streams, next->parameters, next->read(residual_streams, context)};
}

}  // namespace satformer::nn
