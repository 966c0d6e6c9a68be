#include "satformer/nn/hyper_connection.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <vector>

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
  parameters.norm_eps = options.layer_norm ? 1e-5 : 1.1920929e-07;
  parameters.dynamic_alpha_proj = register_parameter("dynamic_alpha_proj", at::zeros({d, n + 1}, tensors));
  parameters.dynamic_beta_proj = register_parameter("dynamic_beta_proj", at::zeros({d}, tensors));
  parameters.dynamic_alpha_scale = register_parameter("dynamic_alpha_scale", at::full({1}, 0.01, tensors));
  parameters.dynamic_beta_scale = register_parameter("dynamic_beta_scale", at::full({1}, 0.01, tensors));
  const auto norm = register_module("norm", std::make_shared<torch::nn::Module>());
  parameters.norm_weight = norm->register_parameter("weight", at::ones({d}, tensors));
  if (options.layer_norm) parameters.norm_bias = norm->register_parameter("bias", at::zeros({d}, tensors));
}

HyperConnectionRead HyperConnectionImpl::read(const at::Tensor& streams) {
  return ops::hyper_connection_read(streams, parameters);
}

at::Tensor HyperConnectionImpl::alpha(const HyperConnectionRead& read) const {
  const ops::HyperConnection& p = parameters;
  const std::int64_t n = p.static_alpha.size(0);
  const std::vector<std::int64_t> sizes{read.beta.size(0), read.beta.size(1), n, n + 1};
  if (!p.dynamic_alpha_scale) return p.static_alpha.expand(sizes);
  const at::Tensor logits = read.kept.slice(-1, 0, n + 1);
  return p.static_alpha + *p.dynamic_alpha_scale * (p.use_tanh ? at::tanh(logits) : logits);
}

at::Tensor HyperConnectionImpl::write(HyperConnectionRead& read, const at::Tensor& output) {
  return ops::hyper_connection_write_(read.mixed, read.beta, output);
}

}  // namespace satformer::nn
