#include "satformer/models/architectures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "satformer/core/error.h"
#include "satformer/models/denseformer.h"
#include "satformer/models/hyper_connections.h"
#include "satformer/models/muddformer.h"
#include "satformer/models/resformer.h"
#include "satformer/models/satformer.h"
#include "satformer/models/transformer.h"

namespace satformer::models {
namespace {

template <typename Model>
std::shared_ptr<LanguageModel> make(const ModelConfig& config, const c10::TensorOptions& tensors) {
  return std::make_shared<Model>(config, tensors);
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string known_names() {
  std::string names;
  for (const Architecture& architecture : architectures()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", architecture.name);
  }
  return names;
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> list{
      {"transformer", "transformer", "TransformerForCausalLM", {}, {}, make<Transformer>},
      {"resformer",
       "ResFormer",
       "ResFormerForCausalLM",
       {},
       {"use_value_residual", "value_residual_last_k", "value_residual_lambda2_init", "value_residual_variant"},
       make<ResFormer>},
      // GatedResFormer is the name under which the authors first published the same equations.
      {"satformer",
       "SATFormer",
       "SATFormerForCausalLM",
       {"GatedResFormer", "GatedResFormerForCausalLM"},
       {"use_value_residual", "value_residual_last_k", "value_residual_gate", "value_residual_proj_bias"},
       make<SATFormer>},
      {"denseformer", "denseformer", "DenseFormerForCausalLM", {}, {"dwa_dilation", "dwa_period"}, make<DenseFormer>},
      {"muddformer",
       "muddformer",
       "MUDDFormerForCausalLM",
       {},
       {"num_ways", "param_realloc", "use_pre_post_da_norm", "da_w1_init"},
       make<MUDDFormer>},
      {"hyperconnections",
       "dhc",
       "HyperConnectionsForCausalLM",
       {},
       {"expansion_rate", "use_dynamic_hc", "use_tanh", "hc_norm_type"},
       make<HyperConnections>},
  };
  return list;
}

const Architecture* find_architecture(std::string_view spelling) {
  for (const Architecture& architecture : architectures()) {
    const auto matches = [&](const std::string& name) { return same_word(name, spelling); };
    if (matches(architecture.name) || matches(architecture.model_type) || matches(architecture.class_name) ||
        std::any_of(architecture.aliases.begin(), architecture.aliases.end(), matches)) {
      return &architecture;
    }
  }
  return nullptr;
}

const Architecture& architecture_from_name(std::string_view spelling, std::string_view source) {
  const Architecture* architecture = find_architecture(spelling);
  require(architecture != nullptr, "{}: unknown architecture \"{}\", expected one of {}", source, spelling,
          known_names());
  return *architecture;
}

}  // namespace satformer::models
