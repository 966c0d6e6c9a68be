#include "tests/satformer/models/model_testing.h"

namespace satformer::testing {

const std::vector<NamedConfig>& configurations() {
  static const std::vector<NamedConfig> list{
      {"transformer", "transformer", {}},
      {"transformer, plain", "transformer", {{"qk_norm", false}, {"tie_word_embeddings", false}}},
      {"transformer, grouped", "transformer", {{"num_kv_heads", 2}, {"qkv_bias", true}}},
      {"transformer, window", "transformer", {{"window_size", 3}}},
      {"transformer, window 1", "transformer", {{"window_size", 1}}},
      {"transformer, wide window", "transformer", {{"window_size", 64}}},
      {"transformer, one layer", "transformer", {{"num_hidden_layers", 1}}},
      {"transformer, norms", "transformer", {{"norm_eps", 0.1}, {"qk_norm_eps", 0.2}, {"rope_theta", 100.0}}},
      {"transformer, pad tied", "transformer", {{"pad_token_id", 3}}},
      {"transformer, pad untied", "transformer", {{"pad_token_id", 0}, {"tie_word_embeddings", false}}},
      {"satformer relu", "satformer", {}},
      {"satformer sigmoid", "satformer", {{"value_residual_gate", "sigmoid"}, {"num_kv_heads", 2}}},
      {"satformer softmax", "satformer", {{"value_residual_gate", "softmax"}}},
      {"satformer softmax_sigmoid", "satformer", {{"value_residual_gate", "softmax_sigmoid"}, {"num_kv_heads", 2}}},
      {"satformer tanh", "satformer", {{"value_residual_gate", "tanh"}, {"value_residual_proj_bias", true}}},
      {"satformer identity", "satformer", {{"value_residual_gate", "identity"}, {"num_kv_heads", 1}}},
      {"satformer bias", "satformer", {{"value_residual_proj_bias", true}, {"qkv_bias", true}, {"qk_norm", false}}},
      {"satformer last 2", "satformer", {{"value_residual_last_k", 2}, {"value_residual_gate", "softmax"}}},
      {"satformer last 0", "satformer", {{"value_residual_last_k", 0}}},
      {"satformer last all", "satformer", {{"value_residual_last_k", 4}}},
      {"satformer off", "satformer", {{"use_value_residual", false}}},
      {"satformer one layer", "satformer", {{"num_hidden_layers", 1}}},
      {"satformer window", "satformer", {{"window_size", 4}, {"num_kv_heads", 2}, {"tie_word_embeddings", false}}},
      {"resformer", "resformer", {}},
      {"resformer grouped", "resformer", {{"num_kv_heads", 2}, {"value_residual_lambda2_init", 0.7}}},
      {"resformer last 1", "resformer", {{"value_residual_last_k", 1}}},
      {"resformer last 0", "resformer", {{"value_residual_last_k", 0}}},
      {"resformer off", "resformer", {{"use_value_residual", false}}},
      {"resformer one layer", "resformer", {{"num_hidden_layers", 1}}},
      {"resformer two layers", "resformer", {{"num_hidden_layers", 2}}},
      {"resformer identity", "resformer", {{"value_residual_variant", "identity"}}},
      {"resformer constant", "resformer", {{"value_residual_variant", "constant"}, {"value_residual_last_k", 2}}},
      {"resformer sparse", "resformer", {{"value_residual_variant", "sparse"}}},
      {"resformer sparse of 7", "resformer", {{"value_residual_variant", "sparse"}, {"num_hidden_layers", 7}}},
  };
  return list;
}

}  // namespace satformer::testing
