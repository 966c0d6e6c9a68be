#include "satformer/models/model_keys.h"

#include <algorithm>

#include "satformer/config/key_checks.h"
#include "satformer/models/architectures.h"

namespace satformer::models {
namespace {

constexpr std::int64_t kLargest = ModelConfig::kLargestSize;
constexpr std::int64_t kLongest = std::int64_t{1} << 31;

// Keys of the published files that mean nothing here.
const KeyList& keys_without_meaning() {
  using enum KeyType;
  static const KeyList keys{{"fuse_norm", boolean, nullptr, ""},
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
                            {"_name_or_path", string, nullptr, ""}};
  return keys;
}

void check_affine(bool value, const ModelConfig& /*config*/, const KeyPlace& place) {
  require(value, "{}: {} must be true; norms without weights are not implemented", place.source, place.path);
}

bool holds(const KeyList& keys, const std::string& path) {
  return std::any_of(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
}

KeyList make_model_keys() {
  KeyList keys;
  append_keys(trunk_keys(), keys);
  for (const Architecture& architecture : architectures()) {
    for (const ModelKey& row : architecture.keys) {
      if (!holds(keys, row.key.path)) keys.push_back(row.key);
    }
  }
  keys.insert(keys.end(), keys_without_meaning().begin(), keys_without_meaning().end());
  return keys;
}

}  // namespace

const std::vector<ModelKey>& trunk_keys() {
  using C = ModelConfig;
  static const std::vector<ModelKey> keys{
      {"vocab_size", &C::vocab_size, "V, rows of the embedding", between(1, kLargest)},
      {"hidden_size", &C::hidden_size, "d, width of the residual stream", between(1, kLargest)},
      {"num_hidden_layers", &C::num_hidden_layers, "L, number of blocks", between(1, kLargest)},
      {"num_heads", &C::num_heads, "H, query heads; divides hidden_size"},
      ModelKey("num_kv_heads", &C::num_kv_heads, "H_kv, key and value heads; divides num_heads; null: num_heads")
          .derived(),
      ModelKey("hidden_ratio", &C::hidden_ratio,
               "without intermediate_size: hidden_ratio d 2/3, up to a multiple of 256; null: 4")
          .input_only(),
      ModelKey("intermediate_size", &C::intermediate_size, "f, width of the MLP; null: from hidden_ratio").derived(),
      {"hidden_act", &C::hidden_act, "activation of the MLP: swish or silu, the same function",
       one_of({"swish", "silu"})},
      {"qkv_bias", &C::qkv_bias, "biases in the query, key and value projections"},
      {"qk_norm", &C::qk_norm, "RMSNorm over each query's and key's head dimension"},
      {"qk_norm_eps", &C::qk_norm_eps, "eps of the query and key norms", not_negative()},
      {"window_size", &C::window_size, "w: token t attends to t-w+1 .. t; null: to all before it",
       between(1, kLongest)},
      {"rope_theta", &C::rope_theta, "base of the rotary frequencies", above_zero()},
      {"max_position_embeddings", &C::max_position_embeddings, "longest sequence that the model is meant for",
       between(1, kLongest)},
      {"initializer_range", &C::initializer_range, "standard deviation of initial linear and embedding weights",
       not_negative()},
      {"elementwise_affine", &C::elementwise_affine, "norms have weights; only true is implemented", check_affine},
      {"norm_eps", &C::norm_eps, "eps of the block norms and the final norm", not_negative()},
      {"tie_word_embeddings", &C::tie_word_embeddings, "the head is the embedding matrix"},
      {"pad_token_id", &C::pad_token_id, "id whose embedding gets no gradient from the lookup",
       between(0, &C::vocab_size, -1)},
      {"bos_token_id", &C::bos_token_id, "begin-of-text id"},
      {"eos_token_id", &C::eos_token_id, "end-of-text id"},
  };
  return keys;
}

std::vector<ModelKey> value_residual_keys() {
  return {{"use_value_residual", &ModelConfig::use_value_residual,
           "ResFormer, SATFormer: mix first values; false: the plain Transformer"},
          {"value_residual_last_k", &ModelConfig::value_residual_last_k,
           "only the last k layers mix; null: all but the first", between(0, &ModelConfig::num_hidden_layers)}};
}

const KeyList& model_keys() {
  static const KeyList keys = make_model_keys();
  return keys;
}

KeyList model_keys(const std::string& architecture) {
  KeyList meant;
  append_keys(trunk_keys(), meant);
  append_keys(architecture_from_name(architecture, "model").keys, meant);
  KeyList keys = model_keys();
  for (Key& key : keys) {
    if (!holds(meant, key.path)) key.help.clear();
  }
  return keys;
}

}  // namespace satformer::models
