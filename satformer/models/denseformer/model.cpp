#include "satformer/models/denseformer/model.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "satformer/models/architecture_list.h"
#include "satformer/nn/depth_aggregate.h"

namespace satformer::models {

DenseFormer::DenseFormer(const ModelConfig& config, const c10::TensorOptions& tensors)
    : BlockDecoder(config, tensors, [](std::int64_t) { return nullptr; }) {
  const auto modules = trunk().register_module("dwa_modules", std::make_shared<torch::nn::Module>());
  const auto alphas = modules->register_module("alphas", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    at::Tensor& alpha = alphas_.emplace_back();
    if ((i + 1) % config.dwa_period != 0) continue;
    const std::int64_t sources = (i + 1) / config.dwa_dilation + 1;
    at::Tensor weight = at::zeros({1, sources}, tensors);
    if (!weight.is_meta()) weight[0][sources - 1].fill_(1.0);
    const auto module = alphas->register_module(std::to_string(i), std::make_shared<torch::nn::Module>());
    alpha = module->register_parameter("weight", weight);
  }
}

at::Tensor DenseFormer::hidden_states(const ModelInput& input, nn::Observer* observer) {
  std::vector<at::Tensor> outputs{nn::for_later_layers(embed(input), fused())};
  nn::LayerContext context = make_context(outputs[0], input, observer);
  at::Tensor y = outputs[0];
  for (std::int64_t i = 0; i < num_layers(); ++i) {
    context.layer = i;
    const at::Tensor x = run_block({.hidden = {y}}, context).hidden.value();
    outputs.push_back(nn::for_later_layers(x, fused()));
    y = average(i, outputs);
    const at::Tensor& alpha = alphas_[static_cast<std::size_t>(i)];
    if (observer != nullptr && alpha.defined()) {
      const std::int64_t dilation = config().dwa_dilation;
      observer->depth_weights(i, {.weights = alpha, .first_source = (i + 1) % dilation, .stride = dilation});
    }
    if (observer != nullptr) observer->named(fmt::format("dwa.{}", i), y);
  }
  return final_norm({y}, observer);
}

at::Tensor DenseFormer::average(std::int64_t layer, const std::vector<at::Tensor>& outputs) {
  const at::Tensor& alpha = alphas_[static_cast<std::size_t>(layer)];
  if (!alpha.defined()) return outputs.back();
  ops::DepthSum sum;  // oldest first, like the weights
  sum.weights = alpha;
  const std::int64_t dilation = config().dwa_dilation;
  for (std::int64_t j = (layer + 1) % dilation; j <= layer + 1; j += dilation) {
    sum.sources.push_back(outputs[static_cast<std::size_t>(j)]);
  }
  return nn::sum_over_depth(sum, fused()).front();
}

std::shared_ptr<LanguageModel> make_denseformer(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<DenseFormer>(config, tensors);
}

}  // namespace satformer::models
