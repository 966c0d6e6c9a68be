#include "satformer/models/language_model.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>

#include "satformer/core/error.h"
#include "satformer/models/constructors.h"
#include "satformer/nn/embedding.h"
#include "satformer/nn/initialization.h"
#include "satformer/nn/linear.h"
#include "satformer/runtime/device.h"

namespace satformer::models {

LossSum LanguageModel::loss(const ModelInput& input, const at::Tensor& targets, nn::Observer* observer) {
  return {loss_sum(input, targets, observer), count_targets(targets)};
}

at::Tensor LanguageModel::loss_sum(const ModelInput& input, const at::Tensor& targets, nn::Observer* observer) {
  const at::Tensor weight = head_weight();
  const at::Tensor on_device = targets.device() == weight.device() ? targets : to_device(targets, weight.device());
  return nn::linear_cross_entropy_sum(hidden_states(input, observer), weight, on_device, fused());
}

std::int64_t LanguageModel::num_parameters() {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

at::Tensor LanguageModel::logits(const at::Tensor& hidden) const { return at::linear(hidden, head_weight()); }

std::set<std::string> LanguageModel::decayed_parameters() const {
  std::set<std::string> names;
  for (const auto& module : named_modules("", /*include_self=*/false)) {
    const auto* linear = module.value()->as<nn::LinearImpl>();
    if (linear != nullptr && linear->decays) names.insert(module.key() + ".weight");
  }
  return names;
}

double LanguageModel::initial_std(std::string_view /*name*/) const { return config_.initializer_range; }

std::int64_t count_targets(const at::Tensor& targets) { return targets.ne(kIgnoreIndex).sum().item<std::int64_t>(); }

at::Tensor shift_labels(const at::Tensor& labels) {
  require(labels.dim() == 2, "shift_labels: labels must be [B, T], got {} dimensions", labels.dim());
  at::Tensor targets = at::full_like(labels, kIgnoreIndex);
  if (labels.size(1) > 1) targets.slice(1, 0, -1).copy_(labels.slice(1, 1));
  return targets;
}

std::shared_ptr<LanguageModel> make_uninitialized_model(const ModelConfig& config, c10::Device device) {
  return construct_model(config, c10::TensorOptions().dtype(c10::kFloat).device(device));
}

std::shared_ptr<LanguageModel> make_model(const ModelConfig& config, std::uint64_t seed) {
  const std::shared_ptr<LanguageModel> model = make_uninitialized_model(config);
  for (const auto& module : model->named_modules()) {
    at::Tensor weight;
    if (const auto* linear = module.value()->as<nn::LinearImpl>()) weight = linear->weight;
    if (const auto* embedding = module.value()->as<nn::EmbeddingImpl>()) weight = embedding->weight;
    if (!weight.defined()) continue;
    const std::string name = module.key() + ".weight";
    nn::initialize_normal(weight, model->initial_std(name), seed, name);
  }
  return model;
}

}  // namespace satformer::models
