#include "satformer/models/denseformer/model.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "satformer/fused/depth_sum.h"
#include "satformer/fused/shared_gradient.h"
#include "satformer/models/architecture_list.h"

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
  std::vector<at::Tensor> outputs{nn::fan_out(embed(input))};
  const nn::AttentionContext sequence = make_attention_context(outputs[0], input);
  at::Tensor y = outputs[0];
  for (std::int64_t i = 0; i < num_layers(); ++i) {
    const auto block = run_layer({.hidden = {y}, .sequence = sequence, .layer = i, .observer = observer});
    outputs.push_back(nn::fan_out(block.hidden.value()));
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
  nn::DepthSum sum;  // oldest first, like the weights
  sum.weights = alpha;
  const std::int64_t dilation = config().dwa_dilation;
  for (std::int64_t j = (layer + 1) % dilation; j <= layer + 1; j += dilation) {
    sum.sources.push_back(outputs[static_cast<std::size_t>(j)]);
  }
  return nn::sum_over_depth(sum).front();
}

std::shared_ptr<LanguageModel> make_denseformer(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<DenseFormer>(config, tensors);
}

}  // namespace satformer::models
