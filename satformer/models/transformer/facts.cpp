#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"

namespace satformer::models {
Architecture transformer_facts() {
  return {.name = "transformer",
          .model_type = "transformer",
          .class_name = "TransformerForCausalLM",
          .value_mix = ValueMixKind::kNone,
          .access = AccessKind::kNone};
}

}  // namespace satformer::models
