#include "satformer/nn/hyper_connection.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <utility>
#include <vector>

#include "satformer/core/error.h"

namespace satformer::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::array<const std::optional<at::Tensor>*, 6> optional_parameters(const ops::HyperConnection& p) {
  return {&p.norm_weight,       &p.norm_bias,           &p.dynamic_alpha_proj,
          &p.dynamic_beta_proj, &p.dynamic_alpha_scale, &p.dynamic_beta_scale};
}

struct ConnectionsRecord : torch::CustomClassHolder {
  ConnectionsRecord(ops::HyperConnection first, ops::HyperConnection second)
      : first(std::move(first)), second(std::move(second)) {}
  ops::HyperConnection first, second;
};

// Inputs: mixed and beta of the first read, the layer's output, the first read's streams (without gradient), the second
// connection's parameters. Outputs: the second read.
struct WriteAndRead : torch::autograd::Function<WriteAndRead> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<ConnectionsRecord>& record,
                               at::TensorList tensors) {
    const at::Tensor &beta = tensors[1], &output = tensors[2], &before = tensors[3];
    at::Tensor streams = tensors[0].detach();  // no one reads mixed after this
    ops::hyper_connection_write_(streams, beta, output);
    HyperConnectionRead read = ops::hyper_connection_read(streams, record->second);
    context->saved_data["record"] = c10::IValue::make_capsule(record);
    context->save_for_backward({beta, output, before, read.kept});
    context->mark_non_differentiable({read.kept});
    return {read.input, read.mixed, read.beta, read.kept};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require(!at::GradMode::is_enabled(), "hyper-connection: second derivatives are not implemented");
    const auto capsule = context->saved_data["record"].toCapsule();
    const auto& record = static_cast<const ConnectionsRecord&>(*capsule);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &beta = saved[0], &output = saved[1];
    at::Tensor streams = ops::hyper_connection_read(saved[2], record.first).mixed;
    ops::hyper_connection_write_(streams, beta, output);
    const ops::HyperConnectionGradients found =
        ops::hyper_connection_read_backward({grads[0], grads[1], grads[2], {}}, streams, record.second, saved[3]);
    const auto [grad_beta, grad_output] = ops::hyper_connection_write_backward(found.streams, beta, output);
    variable_list result{{}, found.streams, grad_beta, grad_output, {}, found.static_alpha, found.static_beta};
    const std::array gradients{found.norm_weight,       found.norm_bias,           found.dynamic_alpha_proj,
                               found.dynamic_beta_proj, found.dynamic_alpha_scale, found.dynamic_beta_scale};
    const auto parameters = optional_parameters(record.second);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i]->has_value()) result.push_back(gradients[i]);
    }
    return result;
  }
};

}  // namespace

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

HyperConnectionRead write_and_read(HyperConnectionUse& use, const at::Tensor& output, const HyperConnection& next) {
  const ops::HyperConnection& second = next->parameters;
  variable_list tensors{use.read.mixed,       use.read.beta,       output,
                        use.streams.detach(), second.static_alpha, second.static_beta};
  for (const std::optional<at::Tensor>* parameter : optional_parameters(second)) {
    if (parameter->has_value()) tensors.push_back(**parameter);
  }
  const auto record = c10::make_intrusive<ConnectionsRecord>(use.connection->parameters, second);
  const variable_list read = WriteAndRead::apply(record, at::TensorList(tensors));
  use.read.mixed = at::Tensor();
  return {read[0], read[1], read[2], read[3]};
}

}  // namespace satformer::nn
