#include "satformer/models/constructors.h"

#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"

namespace satformer::models {

std::shared_ptr<LanguageModel> construct_model(const ModelConfig& config, const c10::TensorOptions& tensors) {
  using Make = std::shared_ptr<LanguageModel> (*)(const ModelConfig&, const c10::TensorOptions&);
#define SATFORMER_MAKE(name) make_##name,
  static constexpr Make kMake[] = {SATFORMER_ARCHITECTURES(SATFORMER_MAKE)};
#undef SATFORMER_MAKE
  const Architecture& architecture = architecture_from_name(config.architecture, "model");
  return kMake[&architecture - architectures().data()](config, tensors);
}

}  // namespace satformer::models
