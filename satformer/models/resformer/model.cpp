#include "satformer/models/resformer/model.h"

#include <ATen/ops/full.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include "satformer/models/architecture_list.h"

namespace satformer::models {

std::optional<nn::FixedMixOptions> fixed_mix(const ModelConfig& config) {
  const std::string& variant = config.value_residual_variant;
  if (variant == "identity") return nn::FixedMixOptions{0.5, 0.5};
  if (variant == "constant") return nn::FixedMixOptions{2.0, 1.0};
  if (variant == "sparse") return nn::FixedMixOptions{5.0, 1.0};
  return std::nullopt;
}

namespace {

std::shared_ptr<nn::ValueMixer> make_static_mixer(const ModelConfig& config, std::int64_t layer,
                                                  const c10::TensorOptions& tensors) {
  if (!config.mixes_values(layer)) return nullptr;
  if (const auto fixed = fixed_mix(config)) return std::make_shared<nn::FixedMixerImpl>(*fixed);
  return std::make_shared<nn::StaticMixerImpl>(nn::StaticMixOptions{config.value_residual_lambda2_init}, tensors);
}

}  // namespace

ResFormer::ResFormer(const ModelConfig& config, const c10::TensorOptions& tensors)
    : ResidualDecoder(config, tensors, [&](std::int64_t layer) { return make_static_mixer(config, layer, tensors); }) {
  if (!config.use_value_residual || config.value_residual_variant != "learnable") return;
  const auto manager = trunk().register_module("lambda_manager", std::make_shared<torch::nn::Module>());
  const std::int64_t layers = config.num_hidden_layers;
  lambda_scale_ = manager->register_parameter("lambda_scale", at::full({}, static_cast<double>(layers), tensors));
  lambda_logits_ = manager->register_parameter("lambda_logits", at::zeros({layers - 1}, tensors));
}

std::vector<at::Tensor> ResFormer::layer_lambda1(nn::Observer* observer) const {
  if (!lambda_scale_.defined()) return {};
  const at::Tensor lambda1 = lambda_scale_ * at::softmax(lambda_logits_, 0);
  if (observer != nullptr) observer->named("lambda1", lambda1);
  return lambda1.unbind();
}

std::shared_ptr<LanguageModel> make_resformer(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<ResFormer>(config, tensors);
}

}  // namespace satformer::models
