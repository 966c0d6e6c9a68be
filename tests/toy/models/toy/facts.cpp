#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"

namespace satformer::models {

// SATFormer's kind, and so its keys and its analysis.
Architecture toy_facts() {
  return {.name = "toy",
          .model_type = "Toy",
          .class_name = "ToyForCausalLM",
          .aliases = {"ToyFormer"},
          .value_mix = ValueMixKind::kSelective,
          .access = AccessKind::kSelectiveValueMix,
          .keys = satformer_facts().keys};
}

}  // namespace satformer::models
