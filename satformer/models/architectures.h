#pragma once
// What is known of each architecture: names, kind, configuration keys. Without torch; the models that implement them
// are made by models/constructors.h. A new architecture is a folder and a line in models/architecture_list.h.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "satformer/models/model_config.h"

namespace satformer::models {

// How deep layers mix the first layer's values into their own.
enum class ValueMixKind {
  kNone,
  kStatic,     // weights that are the same for every token
  kSelective,  // a gate per token and KV head
};

// How deep layers get at early representations.
enum class AccessKind {
  kNone,
  kStaticValueMix,
  kSelectiveValueMix,
  kDepthWeights,  // a weighted sum over the outputs of all layers so far
  kHyperConnections,
};

struct Architecture {
  std::string name;        // ours: "satformer"
  std::string model_type;  // in a published config.json: "SATFormer"
  std::string class_name;  // in a published config's class_name or architectures: "SATFormerForCausalLM"
  std::vector<std::string> aliases = {};
  ValueMixKind value_mix = ValueMixKind::kNone;
  AccessKind access = AccessKind::kNone;
  std::vector<ModelKey> keys = {};  // besides the trunk's, which every architecture has

  // The MLP's width from hidden_ratio, rounded. Null: up to a multiple of 256.
  std::int64_t (*round_width)(std::int64_t width) = nullptr;
  // The MLP's width in a layer (0-based). Null: intermediate_size in every layer.
  std::int64_t (*layer_width)(const ModelConfig& config, std::int64_t layer) = nullptr;
};

// All of them, in the order of models/architecture_list.h.
const std::vector<Architecture>& architectures();

// The first of the list: the plain model that the others are measured against.
const Architecture& baseline();

// By name, model_type, class_name or alias, case-insensitive; null when there is none.
const Architecture* find_architecture(std::string_view spelling);

// As find_architecture; Error names `source` and lists the known ones.
const Architecture& architecture_from_name(std::string_view spelling, std::string_view source);

// "transformer, resformer, ...", for messages and help.
std::string architecture_names();

// The architecture of a configuration: its traits say what a comparison of names would.
const Architecture& architecture_of(const ModelConfig& config);

}  // namespace satformer::models
