#include "satformer/config/key_checks.h"
#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"

namespace satformer::models {
Architecture hyperconnections_facts() {
  std::vector<ModelKey> keys{
      {"expansion_rate", &ModelConfig::expansion_rate, "HyperConnections: n, residual streams", between(1, 8)},
      {"use_dynamic_hc", &ModelConfig::use_dynamic_hc, "HyperConnections: coefficients that depend on the token"},
      {"use_tanh", &ModelConfig::use_tanh, "HyperConnections: tanh in the dynamic coefficients"},
      {"hc_norm_type", &ModelConfig::hc_norm_type, "HyperConnections: norm of the dynamic coefficients: rms or layer",
       one_of({"rms", "layer"})}};
  return {.name = "hyperconnections",
          .model_type = "dhc",
          .class_name = "HyperConnectionsForCausalLM",
          .value_mix = ValueMixKind::kNone,
          .access = AccessKind::kHyperConnections,
          .keys = std::move(keys)};
}

}  // namespace satformer::models
