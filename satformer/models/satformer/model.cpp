#include "satformer/models/satformer/model.h"

#include "satformer/models/architecture_list.h"
#include "satformer/nn/gates.h"

namespace satformer::models {
namespace {

std::shared_ptr<nn::ValueMixer> make_selective_mixer(const ModelConfig& config, std::int64_t layer,
                                                     const c10::TensorOptions& tensors) {
  if (!config.mixes_values(layer)) return nullptr;
  const nn::SelectiveMixOptions options{.hidden_size = config.hidden_size,
                                        .num_kv_heads = config.num_kv_heads,
                                        .gate = nn::find_gate(config.value_residual_gate).value(),
                                        .bias = config.value_residual_proj_bias};
  return std::make_shared<nn::SelectiveMixerImpl>(options, tensors);
}

}  // namespace

SATFormer::SATFormer(const ModelConfig& config, const c10::TensorOptions& tensors)
    : ResidualDecoder(config, tensors,
                      [&](std::int64_t layer) { return make_selective_mixer(config, layer, tensors); }) {}

std::shared_ptr<LanguageModel> make_satformer(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<SATFormer>(config, tensors);
}

}  // namespace satformer::models
