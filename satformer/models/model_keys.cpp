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

bool is_architecture_key(const std::string& key) {
  return key == "use_value_residual" || key.starts_with("value_residual_");
}

}  // namespace

bool model_key_has_meaning(const std::string& key, const Architecture& architecture) {
  return !is_architecture_key(key) ||
         std::find(architecture.keys.begin(), architecture.keys.end(), key) != architecture.keys.end();
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
