#include "satformer/config/key_checks.h"
#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"
#include "satformer/models/model_keys.h"
#include "satformer/nn/gates.h"

namespace satformer::models {
namespace {

void check_gate(const std::string& value, const ModelConfig& /*config*/, const KeyPlace& place) {
  require(nn::find_gate(value).has_value(), "{}: {} must be one of {}, got {}", place.source, place.path,
          nn::gate_names(), in_quotes(value));
}

}  // namespace

Architecture satformer_facts() {
  std::vector<ModelKey> keys = value_residual_keys();
  keys.emplace_back("value_residual_gate", &ModelConfig::value_residual_gate, "SATFormer: " + nn::gate_names(),
                    check_gate);
  keys.emplace_back("value_residual_proj_bias", &ModelConfig::value_residual_proj_bias,
                    "SATFormer: a bias in the gate's projection");
  return {.name = "satformer",
          .model_type = "SATFormer",
          .class_name = "SATFormerForCausalLM",
          // The name under which the authors first published the same equations.
          .aliases = {"GatedResFormer", "GatedResFormerForCausalLM"},
          .value_mix = ValueMixKind::kSelective,
          .access = AccessKind::kSelectiveValueMix,
          .keys = std::move(keys)};
}

}  // namespace satformer::models
