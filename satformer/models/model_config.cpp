#include "satformer/models/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"
#include "satformer/models/architectures.h"
#include "satformer/models/model_keys.h"
#include "satformer/nn/gates.h"

namespace satformer::models {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 4> kVariants{"learnable", "identity", "constant", "sparse"};

// Reads values, leaving a field as it is where its key is absent, null or of another architecture.
class Reader {
 public:
  Reader(const json& values, const Architecture& architecture) : values_(values), architecture_(architecture) {}

  template <typename Field>
  void operator()(const char* key, Field& field) const {
    const json& value = value_at(values_, key);
    if (!value.is_null() && model_key_has_meaning(key, architecture_)) value.get_to(field);
  }
  void operator()(const char* key, std::optional<std::int64_t>& field) const {
    const json& value = value_at(values_, key);
    if (!value.is_null() && model_key_has_meaning(key, architecture_)) field = value.get<std::int64_t>();
  }

 private:
  const json& values_;
  const Architecture& architecture_;
};

// MUDDFormer's rule: to the nearest multiple of 256, at least 256.
std::int64_t nearest_width(std::int64_t width) { return std::max<std::int64_t>(256, (width + 127) / 256 * 256); }

// The published rules: truncate, then round up to a multiple of 256, or MUDDFormer's.
std::int64_t default_intermediate_size(const ModelConfig& config, double hidden_ratio) {
  const double exact = static_cast<double>(config.hidden_size) * hidden_ratio * 2 / 3;
  // check_sizes refuses what does not fit; here it must only not overflow.
  const auto width = static_cast<std::int64_t>(std::clamp(exact, 0.0, 1e15));
  return config.architecture == "muddformer" ? nearest_width(width) : (width + 255) / 256 * 256;
}

void check_range(std::int64_t value, std::int64_t low, std::int64_t high, const char* key, const std::string& source) {
  require(low <= value && value <= high, "{}: {} must be {} .. {}, got {}", source, key, low, high, value);
}

void check_sizes(const ModelConfig& config, const std::string& source) {
  constexpr std::int64_t kLargest = 1 << 24;  // products of two sizes stay far from overflow
  check_range(config.vocab_size, 1, kLargest, "vocab_size", source);
  check_range(config.hidden_size, 1, kLargest, "hidden_size", source);
  check_range(config.num_hidden_layers, 1, kLargest, "num_hidden_layers", source);
  check_range(config.num_heads, 1, config.hidden_size, "num_heads", source);
  check_range(config.num_kv_heads, 1, config.num_heads, "num_kv_heads", source);
  check_range(config.intermediate_size, 1, kLargest, "intermediate_size", source);
  check_range(config.max_position_embeddings, 1, std::int64_t{1} << 31, "max_position_embeddings", source);
  if (config.window_size) check_range(*config.window_size, 1, std::int64_t{1} << 31, "window_size", source);
  if (config.pad_token_id) check_range(*config.pad_token_id, 0, config.vocab_size - 1, "pad_token_id", source);
  if (config.value_residual_last_k) {
    check_range(*config.value_residual_last_k, 0, config.num_hidden_layers, "value_residual_last_k", source);
  }
  check_range(config.dwa_dilation, 1, kLargest, "dwa_dilation", source);
  check_range(config.dwa_period, 1, kLargest, "dwa_period", source);
  check_range(config.num_ways, 4, 4, "num_ways", source);
  check_range(config.expansion_rate, 1, 8, "expansion_rate", source);
  require(config.hidden_size % config.num_heads == 0, "{}: num_heads must divide hidden_size {}, got {}", source,
          config.hidden_size, config.num_heads);
  require(config.num_heads % config.num_kv_heads == 0, "{}: num_kv_heads must divide num_heads {}, got {}", source,
          config.num_heads, config.num_kv_heads);
  require(config.head_dim() % 2 == 0, "{}: hidden_size / num_heads must be even for rotary positions, got {} / {} = {}",
          source, config.hidden_size, config.num_heads, config.head_dim());
}

void check_numbers(const ModelConfig& config, const std::string& source) {
  const auto not_negative = [&](double value, const char* key) {
    require(std::isfinite(value) && value >= 0, "{}: {} must be 0 or more, got {}", source, key, value);
  };
  not_negative(config.norm_eps, "norm_eps");
  not_negative(config.qk_norm_eps, "qk_norm_eps");
  not_negative(config.initializer_range, "initializer_range");
  require(std::isfinite(config.rope_theta) && config.rope_theta > 0, "{}: rope_theta must be above 0, got {}", source,
          config.rope_theta);
}

void check_words(const ModelConfig& config, const json& values, const std::string& source) {
  std::string activation = "swish";
  if (const auto given = get_optional<std::string>(values, "hidden_act")) activation = *given;
  require(activation == "swish" || activation == "silu", "{}: hidden_act must be swish or silu, got {}", source,
          in_quotes(activation));
  require(get_optional<bool>(values, "elementwise_affine").value_or(true),
          "{}: elementwise_affine must be true; norms without weights are not implemented", source);
  require(nn::find_gate(config.value_residual_gate).has_value(), "{}: value_residual_gate must be one of {}, got {}",
          source, nn::gate_names(), in_quotes(config.value_residual_gate));
  const auto variant = std::find(kVariants.begin(), kVariants.end(), config.value_residual_variant);
  require(variant != kVariants.end(),
          "{}: value_residual_variant must be learnable, identity, constant or sparse, got {}", source,
          in_quotes(config.value_residual_variant));
  require(config.da_w1_init == "1/d" || config.da_w1_init == "1/sqrt(d)",
          "{}: da_w1_init must be 1/d or 1/sqrt(d), got {}", source, in_quotes(config.da_w1_init));
  require(config.hc_norm_type == "rms" || config.hc_norm_type == "layer",
          "{}: hc_norm_type must be rms or layer, got {}", source, in_quotes(config.hc_norm_type));
}

// What config.json says of its architecture: model_type, architectures[0], or both.
std::vector<std::string> declared_names(const json& given, const std::string& source) {
  require(given.is_object(), "{}: expected an object, came {}", source, shortened(given));
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
  const bool has_mixers = architecture == "resformer" || architecture == "satformer";
  if (!has_mixers || !use_value_residual || layer == 0) return false;
  if (value_residual_last_k && layer < num_hidden_layers - *value_residual_last_k) return false;
  const bool sparse = architecture == "resformer" && value_residual_variant == "sparse";
  return !sparse || layer >= num_hidden_layers - (num_hidden_layers + 2) / 3;
}

std::int64_t ModelConfig::layer_intermediate_size(std::int64_t layer) const {
  if (architecture != "muddformer" || !param_realloc || num_hidden_layers == 1) return intermediate_size;
  const auto last = static_cast<double>(num_hidden_layers - 1), i = static_cast<double>(layer);
  const double scale = (0.5 * (last - i) + 1.5 * i) / last;
  // nearbyint: half to even, as the published code's round.
  return nearest_width(static_cast<std::int64_t>(std::nearbyint(scale * static_cast<double>(intermediate_size))));
}

ModelConfig model_config_from_json(const json& values, const std::string& architecture, const std::string& source) {
  const Architecture& known = architecture_from_name(architecture, source);
  const Reader read(values, known);
  ModelConfig config;
  config.architecture = known.name;
  read("vocab_size", config.vocab_size);
  read("hidden_size", config.hidden_size);
  read("num_hidden_layers", config.num_hidden_layers);
  read("num_heads", config.num_heads);
  config.num_kv_heads = config.num_heads;
  read("num_kv_heads", config.num_kv_heads);
  config.intermediate_size =
      default_intermediate_size(config, get_optional<double>(values, "hidden_ratio").value_or(4.0));
  read("intermediate_size", config.intermediate_size);
  read("qkv_bias", config.qkv_bias);
  read("qk_norm", config.qk_norm);
  read("qk_norm_eps", config.qk_norm_eps);
  read("window_size", config.window_size);
  read("rope_theta", config.rope_theta);
  read("max_position_embeddings", config.max_position_embeddings);
  read("initializer_range", config.initializer_range);
  read("norm_eps", config.norm_eps);
  read("tie_word_embeddings", config.tie_word_embeddings);
  read("pad_token_id", config.pad_token_id);
  read("bos_token_id", config.bos_token_id);
  read("eos_token_id", config.eos_token_id);
  read("use_value_residual", config.use_value_residual);
  read("value_residual_gate", config.value_residual_gate);
  read("value_residual_proj_bias", config.value_residual_proj_bias);
  read("value_residual_last_k", config.value_residual_last_k);
  read("value_residual_lambda2_init", config.value_residual_lambda2_init);
  read("value_residual_variant", config.value_residual_variant);
  read("dwa_dilation", config.dwa_dilation);
  read("dwa_period", config.dwa_period);
  read("num_ways", config.num_ways);
  read("param_realloc", config.param_realloc);
  read("use_pre_post_da_norm", config.use_pre_post_da_norm);
  read("da_w1_init", config.da_w1_init);
  read("expansion_rate", config.expansion_rate);
  read("use_dynamic_hc", config.use_dynamic_hc);
  read("use_tanh", config.use_tanh);
  read("hc_norm_type", config.hc_norm_type);
  check_sizes(config, source);
  check_numbers(config, source);
  check_words(config, values, source);
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
  const Architecture& architecture = architecture_from_name(config.architecture, "model");
  const auto nullable = [](const std::optional<std::int64_t>& value) { return value ? json(*value) : json(nullptr); };
  json result{{"architectures", json::array({architecture.class_name})},
              {"model_type", architecture.model_type},
              {"vocab_size", config.vocab_size},
              {"hidden_size", config.hidden_size},
              {"num_hidden_layers", config.num_hidden_layers},
              {"num_heads", config.num_heads},
              {"num_kv_heads", config.num_kv_heads},
              {"intermediate_size", config.intermediate_size},
              {"hidden_act", "swish"},
              {"qkv_bias", config.qkv_bias},
              {"qk_norm", config.qk_norm},
              {"qk_norm_eps", config.qk_norm_eps},
              {"window_size", nullable(config.window_size)},
              {"rope_theta", config.rope_theta},
              {"max_position_embeddings", config.max_position_embeddings},
              {"initializer_range", config.initializer_range},
              {"elementwise_affine", true},
              {"norm_eps", config.norm_eps},
              {"tie_word_embeddings", config.tie_word_embeddings},
              {"pad_token_id", nullable(config.pad_token_id)},
              {"bos_token_id", config.bos_token_id},
              {"eos_token_id", config.eos_token_id}};
  const json particular{{"use_value_residual", config.use_value_residual},
                        {"value_residual_gate", config.value_residual_gate},
                        {"value_residual_proj_bias", config.value_residual_proj_bias},
                        {"value_residual_last_k", nullable(config.value_residual_last_k)},
                        {"value_residual_lambda2_init", config.value_residual_lambda2_init},
                        {"value_residual_variant", config.value_residual_variant},
                        {"dwa_dilation", config.dwa_dilation},
                        {"dwa_period", config.dwa_period},
                        {"num_ways", config.num_ways},
                        {"param_realloc", config.param_realloc},
                        {"use_pre_post_da_norm", config.use_pre_post_da_norm},
                        {"da_w1_init", config.da_w1_init},
                        {"expansion_rate", config.expansion_rate},
                        {"use_dynamic_hc", config.use_dynamic_hc},
                        {"use_tanh", config.use_tanh},
                        {"hc_norm_type", config.hc_norm_type}};
  for (const std::string& key : architecture.keys) result[key] = particular.at(key);
  return result;
}

}  // namespace satformer::models
