#include "satformer/models/model_keys.h"

#include <algorithm>

#include "satformer/models/model_config.h"
#include "satformer/nn/gates.h"

namespace satformer::models {
namespace {

KeyList make_model_keys() {
  using enum KeyType;
  return {
      {"vocab_size", integer, 32000, "V, rows of the embedding"},
      {"hidden_size", integer, 2048, "d, width of the residual stream"},
      {"num_hidden_layers", integer, 24, "L, number of blocks"},
      {"num_heads", integer, 32, "H, query heads; divides hidden_size"},
      {"num_kv_heads", integer, nullptr, "H_kv, key and value heads; divides num_heads; null: num_heads"},
      {"hidden_ratio", number, nullptr,
       "without intermediate_size: hidden_ratio d 2/3, up to a multiple of 256; null: 4"},
      {"intermediate_size", integer, nullptr, "f, width of the MLP; null: from hidden_ratio"},
      {"hidden_act", string, "swish", "activation of the MLP: swish or silu, the same function"},
      {"qkv_bias", boolean, false, "biases in the query, key and value projections"},
      {"qk_norm", boolean, false, "RMSNorm over each query's and key's head dimension"},
      {"qk_norm_eps", number, 1e-5, "eps of the query and key norms"},
      {"window_size", integer, nullptr, "w: token t attends to t-w+1 .. t; null: to all before it"},
      {"rope_theta", number, 10000.0, "base of the rotary frequencies"},
      {"max_position_embeddings", integer, 2048, "longest sequence that the model is meant for"},
      {"initializer_range", number, 0.02, "standard deviation of initial linear and embedding weights"},
      {"elementwise_affine", boolean, true, "norms have weights; only true is implemented"},
      {"norm_eps", number, 1e-6, "eps of the block norms and the final norm"},
      {"tie_word_embeddings", boolean, false, "the head is the embedding matrix"},
      {"pad_token_id", integer, nullptr, "id whose embedding gets no gradient from the lookup"},
      {"bos_token_id", integer, 1, "begin-of-text id"},
      {"eos_token_id", integer, 2, "end-of-text id"},
      {"use_value_residual", boolean, true, "ResFormer, SATFormer: mix first values; false: the plain Transformer"},
      {"value_residual_gate", string, "relu", "SATFormer: " + nn::gate_names()},
      {"value_residual_proj_bias", boolean, false, "SATFormer: a bias in the gate's projection"},
      {"value_residual_last_k", integer, nullptr, "only the last k layers mix; null: all but the first"},
      {"value_residual_lambda2_init", number, 0.5, "ResFormer: initial weight of a layer's own values"},
      {"value_residual_variant", string, "learnable", "ResFormer: learnable, identity, constant or sparse"},
      {"dwa_dilation", integer, 1, "DenseFormer: average every dwa_dilation-th earlier output"},
      {"dwa_period", integer, 1, "DenseFormer: average after every dwa_period-th block"},
      {"num_ways", integer, 4, "MUDDFormer: streams; only 4 is defined"},
      {"param_realloc", boolean, true, "MUDDFormer: MLPs grow from half to one and a half of the width over the depth"},
      {"use_pre_post_da_norm", boolean, true, "MUDDFormer: norms before and after the aggregation"},
      {"da_w1_init", string, "1/d", "MUDDFormer: initial standard deviation of da.w1: 1/d or 1/sqrt(d)"},
      {"expansion_rate", integer, 4, "HyperConnections: n, residual streams"},
      {"use_dynamic_hc", boolean, true, "HyperConnections: coefficients that depend on the token"},
      {"use_tanh", boolean, true, "HyperConnections: tanh in the dynamic coefficients"},
      {"hc_norm_type", string, "rms", "HyperConnections: norm of the dynamic coefficients: rms or layer"},
      {"fuse_norm", boolean, nullptr, ""},
      {"fuse_swiglu", boolean, nullptr, ""},
      {"fuse_cross_entropy", boolean, nullptr, ""},
      {"fuse_linear_cross_entropy", boolean, nullptr, ""},
      {"use_l2warp", boolean, nullptr, ""},
      {"use_cache", boolean, nullptr, ""},
      {"attn", string, nullptr, ""},
      {"torch_dtype", string, nullptr, ""},
      {"dtype", string, nullptr, ""},
      {"transformers_version", string, nullptr, ""},
      {"auto_map", string, nullptr, ""},
      {"_name_or_path", string, nullptr, ""},
  };
}

bool is_key_of(const std::string& key, const Architecture& architecture) {
  return std::find(architecture.keys.begin(), architecture.keys.end(), key) != architecture.keys.end();
}

}  // namespace

bool model_key_has_meaning(const std::string& key, const Architecture& architecture) {
  const std::vector<Architecture>& all = architectures();
  const bool shared =
      std::none_of(all.begin(), all.end(), [&](const Architecture& one) { return is_key_of(key, one); });
  return shared || is_key_of(key, architecture);
}

const KeyList& model_keys() {
  static const KeyList keys = make_model_keys();
  return keys;
}

KeyList model_keys(const std::string& architecture) {
  const Architecture& known = architecture_from_name(architecture, "model");
  KeyList keys = model_keys();
  for (Key& key : keys) {
    if (!model_key_has_meaning(key.path, known)) key.help.clear();
  }
  return keys;
}

}  // namespace satformer::models
