#include "satformer/models/model_config.h"

#include <algorithm>

#include "satformer/config/key_checks.h"
#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"
#include "satformer/models/architectures.h"
#include "satformer/models/model_keys.h"

namespace satformer::models {
namespace {

using nlohmann::json;

// The published rule: truncate, then round.
std::int64_t default_intermediate_size(const ModelConfig& config) {
  const double exact = static_cast<double>(config.hidden_size) * config.hidden_ratio.value_or(4.0) * 2 / 3;
  // check_relations refuses what does not fit; here it must only not overflow.
  const auto width = static_cast<std::int64_t>(std::clamp(exact, 0.0, 1e15));
  const auto round_width = architecture_of(config).round_width;
  return round_width != nullptr ? round_width(width) : (width + 255) / 256 * 256;
}

// The members whose keys may be null.
void derive(ModelConfig& config, const json& values) {
  if (value_at(values, "num_kv_heads").is_null()) config.num_kv_heads = config.num_heads;
  if (value_at(values, "intermediate_size").is_null()) config.intermediate_size = default_intermediate_size(config);
  config.hidden_act = "swish";  // silu is another name for it
}

// What a row cannot check, because it depends on what is derived or stands further down.
void check_relations(const ModelConfig& config, const std::string& source) {
  require_between(config.num_heads, 1, config.hidden_size, source, "num_heads");
  require_between(config.num_kv_heads, 1, config.num_heads, source, "num_kv_heads");
  require_between(config.intermediate_size, 1, ModelConfig::kLargestSize, source, "intermediate_size");
  require(config.hidden_size % config.num_heads == 0, "{}: num_heads must divide hidden_size {}, got {}", source,
          config.hidden_size, config.num_heads);
  require(config.num_heads % config.num_kv_heads == 0, "{}: num_kv_heads must divide num_heads {}, got {}", source,
          config.num_heads, config.num_kv_heads);
  require(config.head_dim() % 2 == 0, "{}: hidden_size / num_heads must be even for rotary positions, got {} / {} = {}",
          source, config.hidden_size, config.num_heads, config.head_dim());
}

// What config.json says of its architecture: model_type, architectures[0], or both.
std::vector<std::string> declared_names(const json& given, const std::string& source) {
  require(given.is_object(), "{}: expected an object, got {}", source, shortened(given));
  std::vector<std::string> names;
  if (given.contains("model_type")) {
    const json& name = given["model_type"];
    require(name.is_string(), "{}: model_type must be a string, got {}", source, shortened(name));
    names.push_back(name.get<std::string>());
  }
  if (given.contains("architectures")) {
    const json& list = given["architectures"];
    require(list.is_array() && list.size() == 1 && list[0].is_string(),
            "{}: architectures must be a list of one name, got {}", source, shortened(list));
    names.push_back(list[0].get<std::string>());
  }
  require(!names.empty(), "{}: neither model_type nor architectures says which architecture this is", source);
  return names;
}

const Architecture& named_architecture(const std::string& text, const std::string& source) {
  const std::vector<std::string> names = declared_names(parse_strict_json(text, source), source);
  const Architecture& architecture = architecture_from_name(names.front(), source);
  require(&architecture == &architecture_from_name(names.back(), source),
          "{}: model_type {} and architectures {} name different architectures", source, in_quotes(names.front()),
          in_quotes(names.back()));
  return architecture;
}

}  // namespace

bool ModelConfig::mixes_values(std::int64_t layer) const {
  const ValueMixKind kind = architecture_of(*this).value_mix;
  if (kind == ValueMixKind::kNone || !use_value_residual || layer == 0) return false;
  if (value_residual_last_k && layer < num_hidden_layers - *value_residual_last_k) return false;
  const bool sparse = kind == ValueMixKind::kStatic && value_residual_variant == "sparse";
  return !sparse || layer >= num_hidden_layers - (num_hidden_layers + 2) / 3;
}

std::vector<std::int64_t> ModelConfig::mixing_layers() const {
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < num_hidden_layers; ++layer) {
    if (mixes_values(layer)) layers.push_back(layer);
  }
  return layers;
}

std::int64_t ModelConfig::layer_intermediate_size(std::int64_t layer) const {
  const auto layer_width = architecture_of(*this).layer_width;
  return layer_width != nullptr ? layer_width(*this, layer) : intermediate_size;
}

ModelConfig model_config_from_json(const json& values, const std::string& architecture, const std::string& source) {
  const Architecture& known = architecture_from_name(architecture, source);
  ModelConfig config;
  config.architecture = known.name;
  read_keys(trunk_keys(), values, source, config);
  read_keys(known.keys, values, source, config);
  derive(config, values);
  check_relations(config, source);
  return config;
}

std::string declared_architecture(const std::string& text, const std::string& source) {
  return declared_names(parse_strict_json(text, source), source).front();
}

ModelConfig parse_model_config(const std::string& text, const std::string& source, std::vector<std::string>* ignored) {
  const Architecture& architecture = named_architecture(text, source);
  KeyList keys = model_keys(architecture.name);
  keys.push_back({"architectures", KeyType::string, nullptr, ""});
  keys.push_back({"model_type", KeyType::string, nullptr, ""});
  ParsedConfig parsed = parse_config(text, source, keys);
  if (ignored != nullptr) {
    *ignored = std::move(parsed.ignored);
    std::erase_if(*ignored, [](const std::string& key) { return key == "architectures" || key == "model_type"; });
  }
  return model_config_from_json(parsed.values, architecture.name, source);
}

json model_config_to_json(const ModelConfig& config) {
  const Architecture& architecture = architecture_of(config);
  json result{{"architectures", json::array({architecture.class_name})}, {"model_type", architecture.model_type}};
  write_keys(trunk_keys(), config, result);
  write_keys(architecture.keys, config, result);
  return result;
}

}  // namespace satformer::models
