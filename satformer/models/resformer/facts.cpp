#include "satformer/config/key_checks.h"
#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"
#include "satformer/models/model_keys.h"

namespace satformer::models {
Architecture resformer_facts() {
  std::vector<ModelKey> keys = value_residual_keys();
  keys.emplace_back("value_residual_lambda2_init", &ModelConfig::value_residual_lambda2_init,
                    "ResFormer: initial weight of a layer's own values");
  keys.emplace_back("value_residual_variant", &ModelConfig::value_residual_variant,
                    "ResFormer: learnable, identity, constant or sparse",
                    one_of({"learnable", "identity", "constant", "sparse"}));
  return {.name = "resformer",
          .model_type = "ResFormer",
          .class_name = "ResFormerForCausalLM",
          .value_mix = ValueMixKind::kStatic,
          .access = AccessKind::kStaticValueMix,
          .keys = std::move(keys)};
}

}  // namespace satformer::models
