#pragma once
// The model's configuration: the keys of the published code (model.config_overrides there, config.json in a
// checkpoint) and our additions. Meaning and equations: docs/architectures.md.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "satformer/config/config_key.h"

namespace satformer::models {

struct ModelConfig {
  static constexpr std::int64_t kLargestSize = 1 << 24;  // products of two sizes stay far from overflow

  std::string architecture;  // our name: models/architecture_list.h
  // trunk
  std::int64_t vocab_size = 32000;
  std::int64_t hidden_size = 2048;
  std::int64_t num_hidden_layers = 24;
  std::int64_t num_heads = 32;
  std::int64_t num_kv_heads = 32;      // null in a file: num_heads
  std::optional<double> hidden_ratio;  // read alone: intermediate_size holds what it gives
  std::int64_t intermediate_size = 0;  // null in a file: from hidden_ratio
  std::string hidden_act = "swish";
  bool qkv_bias = false;
  bool qk_norm = false;
  double qk_norm_eps = 1e-5;  // ours; the published code has 1e-5 always
  std::optional<std::int64_t> window_size;
  double rope_theta = 10000.0;
  std::int64_t max_position_embeddings = 2048;
  double initializer_range = 0.02;
  bool elementwise_affine = true;
  double norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  std::optional<std::int64_t> pad_token_id;
  std::int64_t bos_token_id = 1;
  std::int64_t eos_token_id = 2;
  // ResFormer, SATFormer
  bool use_value_residual = true;
  std::string value_residual_gate = "relu";
  bool value_residual_proj_bias = false;
  std::optional<std::int64_t> value_residual_last_k;
  double value_residual_lambda2_init = 0.5;
  std::string value_residual_variant = "learnable";  // ours: learnable, identity, constant, sparse
  // DenseFormer
  std::int64_t dwa_dilation = 1;
  std::int64_t dwa_period = 1;
  // MUDDFormer
  std::int64_t num_ways = 4;  // no other value means anything: queries, keys, values, residual
  bool param_realloc = true;
  bool use_pre_post_da_norm = true;
  std::string da_w1_init = "1/d";  // ours: the standard deviation of da.w1; 1/d as published, or 1/sqrt(d)
  // HyperConnections
  std::int64_t expansion_rate = 4;
  bool use_dynamic_hc = true;
  bool use_tanh = true;
  std::string hc_norm_type = "rms";  // rms, layer

  std::int64_t head_dim() const { return hidden_size / num_heads; }
  // Whether layer `layer` (0-based) mixes first values into its own: layer 0 never, else all layers, or those that
  // value_residual_last_k or the variant sparse (the last third, rounded up) leaves.
  bool mixes_values(std::int64_t layer) const;
  // Those layers, ascending.
  std::vector<std::int64_t> mixing_layers() const;
  // f of a layer: intermediate_size, unless the architecture says otherwise (Architecture::layer_width).
  std::int64_t layer_intermediate_size(std::int64_t layer) const;
};

using ModelKey = ConfigKey<ModelConfig>;

// From a parsed flat object. Checks every relation between keys; Error names `source` and the key. Keys that are absent
// or null take their defaults, and keys of another architecture are not read.
ModelConfig model_config_from_json(const nlohmann::json& values, const std::string& architecture,
                                   const std::string& source);

// Reads a checkpoint's config.json text (flat; architecture by model_type or architectures[0], which must agree).
// `ignored` receives the keys that were given and have no meaning here.
ModelConfig parse_model_config(const std::string& text, const std::string& source,
                               std::vector<std::string>* ignored = nullptr);

// The architecture that a config.json names, in its spelling, known or not.
std::string declared_architecture(const std::string& text, const std::string& source);

// The flat object in the published layout (architectures, model_type, keys): what a checkpoint's config.json
// holds.
nlohmann::json model_config_to_json(const ModelConfig& config);

}  // namespace satformer::models
