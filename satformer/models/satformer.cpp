#include "satformer/models/satformer.h"

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
    : BlockDecoder(config, tensors, [&](std::int64_t layer) { return make_selective_mixer(config, layer, tensors); }) {}

at::Tensor SATFormer::hidden_states(const ModelInput& input, nn::Observer* observer) {
  nn::Stream x{embed(input)};
  const nn::Sequence sequence = make_sequence(x.sum, input);
  at::Tensor first_values;
  for (std::int64_t i = 0; i < num_layers(); ++i) {
    const nn::DecoderBlockOutput output =
        run_layer({.hidden = x, .first_values = first_values, .sequence = sequence, .layer = i, .observer = observer});
    x = output.hidden;
    if (i == 0) first_values = output.values;
  }
  return final_norm(x, observer);
}

}  // namespace satformer::models
