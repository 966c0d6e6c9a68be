#include <algorithm>
#include <cmath>

#include "satformer/config/key_checks.h"
#include "satformer/models/architecture_list.h"
#include "satformer/models/architectures.h"

namespace satformer::models {
namespace {

// To the nearest multiple of 256, at least 256.
std::int64_t nearest_width(std::int64_t width) { return std::max<std::int64_t>(256, (width + 127) / 256 * 256); }

// With param_realloc width moves from early layers to late ones: (0.5 (L - i) + 1.5 (i - 1)) / (L - 1)
// intermediate_size in the 1-based layer i, to multiples of 256.
std::int64_t layer_width(const ModelConfig& config, std::int64_t layer) {
  if (!config.param_realloc || config.num_hidden_layers == 1) return config.intermediate_size;
  const auto last = static_cast<double>(config.num_hidden_layers - 1), i = static_cast<double>(layer);
  const double scale = (0.5 * (last - i) + 1.5 * i) / last;
  // nearbyint: half to even, as the published code's round.
  return nearest_width(
      static_cast<std::int64_t>(std::nearbyint(scale * static_cast<double>(config.intermediate_size))));
}

}  // namespace

Architecture muddformer_facts() {
  std::vector<ModelKey> keys{
      {"num_ways", &ModelConfig::num_ways, "MUDDFormer: streams; only 4 is defined", between(4, 4)},
      {"param_realloc", &ModelConfig::param_realloc,
       "MUDDFormer: MLPs grow from half to one and a half of the width over the depth"},
      {"use_pre_post_da_norm", &ModelConfig::use_pre_post_da_norm,
       "MUDDFormer: norms before and after the aggregation"},
      {"da_w1_init", &ModelConfig::da_w1_init, "MUDDFormer: initial standard deviation of da.w1: 1/d or 1/sqrt(d)",
       one_of({"1/d", "1/sqrt(d)"})}};
  return {.name = "muddformer",
          .model_type = "muddformer",
          .class_name = "MUDDFormerForCausalLM",
          .value_mix = ValueMixKind::kNone,
          .access = AccessKind::kDepthWeights,
          .keys = std::move(keys),
          .round_width = nearest_width,
          .layer_width = layer_width};
}

}  // namespace satformer::models
