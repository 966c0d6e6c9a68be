#include "satformer/models/architectures.h"

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

}  // namespace satformer::models
