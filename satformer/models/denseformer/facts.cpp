#include "satformer/config/key_checks.h"
#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"

namespace satformer::models {
Architecture denseformer_facts() {
  std::vector<ModelKey> keys{
      {"dwa_dilation", &ModelConfig::dwa_dilation, "DenseFormer: average every dwa_dilation-th earlier output",
       between(1, ModelConfig::kLargestSize)},
      {"dwa_period", &ModelConfig::dwa_period, "DenseFormer: average after every dwa_period-th block",
       between(1, ModelConfig::kLargestSize)}};
  return {.name = "denseformer",
          .model_type = "denseformer",
          .class_name = "DenseFormerForCausalLM",
          .value_mix = ValueMixKind::kNone,
          .access = AccessKind::kDepthWeights,
          .keys = std::move(keys)};
}

}  // namespace satformer::models
