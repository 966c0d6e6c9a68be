// The model's configuration keys: published files, defaults, checks, round trip.
#include "satformer/models/model_config.h"

#include <algorithm>

#include "satformer/core/error.h"
#include "satformer/models/architectures.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using models::ModelConfig;
using nlohmann::json;

ModelConfig parse(const json& keys, std::vector<std::string>* ignored = nullptr) {
  return models::parse_model_config(keys.dump(), "config.json", ignored);
}

json with(const json& changes) {
  json keys{{"model_type", "SATFormer"}, {"hidden_size", 64}, {"num_heads", 4}};
  if (changes.is_object()) keys.update(changes);
  return keys;
}

std::string error_of(const json& changes) {
  try {
    parse(with(changes));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("defaults are the published ones", "[models][model_config]") {
  const ModelConfig config = parse({{"model_type", "transformer"}});
  CHECK(config.architecture == "transformer");
  CHECK(config.vocab_size == 32000);
  CHECK(config.hidden_size == 2048);
  CHECK(config.num_hidden_layers == 24);
  CHECK(config.num_heads == 32);
  CHECK(config.num_kv_heads == 32);
  CHECK(config.intermediate_size == 5632);  // int(4 * 2048 * 2 / 3) = 5461, up to a multiple of 256
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.qk_norm);
  CHECK(config.qk_norm_eps == 1e-5);
  CHECK_FALSE(config.window_size.has_value());
  CHECK(config.rope_theta == 10000);
  CHECK(config.max_position_embeddings == 2048);
  CHECK(config.initializer_range == 0.02);
  CHECK(config.norm_eps == 1e-6);
  CHECK_FALSE(config.tie_word_embeddings);
  CHECK_FALSE(config.pad_token_id.has_value());
  CHECK(config.use_value_residual);
  CHECK(config.value_residual_gate == "relu");
  CHECK(config.value_residual_variant == "learnable");
}

TEST_CASE("the MLP's width", "[models][model_config]") {
  const auto width = [](const json& changes) { return parse(with(changes)).intermediate_size; };
  CHECK(width({{"hidden_size", 96}, {"hidden_ratio", 4}}) == 256);   // 256 exactly
  CHECK(width({{"hidden_size", 104}, {"hidden_ratio", 4}}) == 512);  // 277.33 -> 277 -> 512
  CHECK(width({{"hidden_size", 768}, {"hidden_ratio", nullptr}}) == 2048);
  CHECK(width({{"hidden_size", 768}, {"hidden_ratio", 3}}) == 1536);
  CHECK(width({{"hidden_size", 768}, {"intermediate_size", 100}}) == 100);
}

TEST_CASE("MUDDFormer's widths", "[models][model_config]") {
  const auto widths = [](json changes) {
    changes["model_type"] = "muddformer";
    const ModelConfig config = parse(with(changes));
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) result.push_back(config.layer_intermediate_size(i));
    return result;
  };
  using Widths = std::vector<std::int64_t>;
  // 320 (0.5, 0.8333, 1.1667, 1.5) = 160, 267, 373, 480: the published model's widths (golden case muddformer).
  CHECK(widths({{"num_hidden_layers", 4}, {"intermediate_size", 320}}) == Widths{256, 256, 256, 512});
  CHECK(widths({{"num_hidden_layers", 3}, {"intermediate_size", 6144}}) == Widths{3072, 6144, 9216});
  CHECK(widths({{"num_hidden_layers", 1}, {"intermediate_size", 100}}) == Widths{100});
  CHECK(widths({{"num_hidden_layers", 2}, {"intermediate_size", 100}, {"param_realloc", false}}) == Widths{100, 100});
  // From hidden_ratio: 277 to the nearest multiple of 256, where the others round up.
  CHECK(widths({{"hidden_size", 104}, {"num_hidden_layers", 1}, {"num_heads", 4}}) == Widths{256});
}

TEST_CASE("architectures are found by every published spelling", "[models][model_config]") {
  for (const char* name :
       {"satformer", "SATFormer", "SATFormerForCausalLM", "GatedResFormer", "gatedresformerforcausallm"}) {
    CHECK(parse({{"model_type", name}}).architecture == "satformer");
    CHECK(parse({{"architectures", {name}}}).architecture == "satformer");
  }
  CHECK(parse({{"model_type", "ResFormer"}, {"architectures", {"ResFormerForCausalLM"}}}).architecture == "resformer");
  CHECK_THROWS_WITH(
      parse({{"model_type", "mamba"}}),
      "config.json: unknown architecture \"mamba\", expected one of transformer, resformer, satformer, denseformer, "
      "muddformer, hyperconnections");
  CHECK(parse({{"model_type", "dhc"}}).architecture == "hyperconnections");
  CHECK(parse({{"model_type", "muddformer"}}).architecture == "muddformer");
  CHECK(parse({{"architectures", {"DenseFormerForCausalLM"}}}).architecture == "denseformer");
  CHECK_THROWS_WITH(parse({{"model_type", "ResFormer"}, {"architectures", {"SATFormerForCausalLM"}}}),
                    Catch::Contains("different architectures"));
  CHECK_THROWS_WITH(parse({{"hidden_size", 64}}), Catch::Contains("neither model_type nor architectures"));
  CHECK_THROWS_WITH(parse({{"model_type", 3}}), Catch::Contains("model_type must be a string"));
  CHECK_THROWS_WITH(models::parse_model_config("[]", "x.json"), Catch::Contains("x.json: expected an object"));
  CHECK(models::declared_architecture(R"({"model_type": "denseformer", "dwa_period": 1})", "x") == "denseformer");
}

TEST_CASE("keys without meaning are listed", "[models][model_config]") {
  std::vector<std::string> ignored;
  parse(with({{"fuse_norm", true},
              {"use_cache", false},
              {"torch_dtype", "float32"},
              {"value_residual_lambda2_init", 0.5},
              {"value_residual_gate", "relu"},
              {"architectures", {"SATFormerForCausalLM"}}}),
        &ignored);
  std::sort(ignored.begin(), ignored.end());
  CHECK(ignored == std::vector<std::string>{"fuse_norm", "torch_dtype", "use_cache", "value_residual_lambda2_init"});

  // Another architecture's keys are not read, not even checked.
  const json foreign{{"model_type", "transformer"}, {"value_residual_gate", "step"}, {"use_value_residual", true}};
  const ModelConfig config = parse(foreign, &ignored);
  CHECK(config.value_residual_gate == "relu");
  CHECK_FALSE(config.mixes_values(3));
  CHECK(ignored.size() == 2);
}

TEST_CASE("unknown keys and wrong types are errors", "[models][model_config]") {
  CHECK(error_of({{"hidden_sise", 64}}) == "config.json: unknown key \"hidden_sise\", did you mean \"hidden_size\"?");
  CHECK(error_of({{"dwa_period", 1}}).find("unknown key \"dwa_period\"") != std::string::npos);
  CHECK(error_of({{"num_heads", "four"}}).find("num_heads") != std::string::npos);
  CHECK(error_of({{"qk_norm", 1}}).find("qk_norm") != std::string::npos);
}

TEST_CASE("relations between keys are checked", "[models][model_config]") {
  CHECK(error_of({}).empty());
  const auto contains = [](const json& changes, const std::string& text) {
    const std::string message = error_of(changes);
    INFO(message);
    CHECK(message.find(text) != std::string::npos);
    CHECK(message.starts_with("config.json: "));
    CHECK(message.find('\n') == std::string::npos);
  };
  contains({{"num_heads", 5}}, "num_heads must divide hidden_size 64, got 5");
  contains({{"num_kv_heads", 3}}, "num_kv_heads must divide num_heads 4, got 3");
  contains({{"num_kv_heads", 8}}, "num_kv_heads must be 1 .. 4, got 8");
  contains({{"num_heads", 64}}, "must be even for rotary positions, got 64 / 64 = 1");
  contains({{"vocab_size", 0}}, "vocab_size must be 1 ..");
  contains({{"hidden_size", -64}}, "hidden_size must be 1 ..");
  contains({{"hidden_size", 1000000000000}}, "hidden_size must be 1 ..");
  contains({{"num_hidden_layers", 0}}, "num_hidden_layers must be 1 ..");
  contains({{"hidden_ratio", 0}}, "intermediate_size must be 1 ..");
  contains({{"hidden_ratio", 1e300}}, "intermediate_size must be 1 ..");
  contains({{"window_size", 0}}, "window_size must be 1 ..");
  contains({{"pad_token_id", 32000}}, "pad_token_id must be 0 .. 31999, got 32000");
  contains({{"pad_token_id", -1}}, "pad_token_id must be 0 .. 31999, got -1");
  contains({{"value_residual_last_k", 25}}, "value_residual_last_k must be 0 .. 24, got 25");
  contains({{"value_residual_last_k", -1}}, "value_residual_last_k must be 0 .. 24, got -1");
  contains({{"value_residual_gate", "step"}}, "value_residual_gate must be one of relu, sigmoid");
  contains({{"model_type", "ResFormer"}, {"value_residual_variant", "dense"}},
           "value_residual_variant must be learnable, identity, constant or sparse, got \"dense\"");
  contains({{"hidden_act", "gelu"}}, "hidden_act must be swish or silu, got \"gelu\"");
  contains({{"elementwise_affine", false}}, "elementwise_affine must be true");
  contains({{"norm_eps", -1e-6}}, "norm_eps must be 0 or more");
  contains({{"rope_theta", 0}}, "rope_theta must be above 0");
  CHECK(error_of({{"hidden_act", "silu"}, {"value_residual_last_k", 24}, {"window_size", 1}}).empty());
}

TEST_CASE("which layers mix", "[models][model_config]") {
  const auto mixing = [](json keys) {
    keys["num_hidden_layers"] = 7;
    const ModelConfig config = parse(with(keys));
    std::string layers;
    for (std::int64_t i = 0; i < 7; ++i) layers += config.mixes_values(i) ? 'x' : '.';
    return layers;
  };
  CHECK(mixing({}) == ".xxxxxx");
  CHECK(mixing({{"value_residual_last_k", 2}}) == ".....xx");
  CHECK(mixing({{"value_residual_last_k", 0}}) == ".......");
  CHECK(mixing({{"value_residual_last_k", 7}}) == ".xxxxxx");
  CHECK(mixing({{"use_value_residual", false}}) == ".......");
  CHECK(mixing({{"model_type", "transformer"}}) == ".......");
  CHECK(mixing({{"model_type", "ResFormer"}}) == ".xxxxxx");
  CHECK(mixing({{"model_type", "ResFormer"}, {"value_residual_variant", "sparse"}}) == "....xxx");
  CHECK(mixing({{"model_type", "ResFormer"}, {"value_residual_variant", "sparse"}, {"value_residual_last_k", 1}}) ==
        "......x");
}

TEST_CASE("a written configuration reads back as it was", "[models][model_config]") {
  for (const char* architecture : {"transformer", "ResFormer", "SATFormer"}) {
    const json keys = with({{"model_type", architecture},
                            {"num_kv_heads", 2},
                            {"qk_norm", true},
                            {"qk_norm_eps", 1e-6},
                            {"window_size", 17},
                            {"rope_theta", 12345.678},
                            {"pad_token_id", 3},
                            {"tie_word_embeddings", true},
                            {"value_residual_last_k", 5},
                            {"value_residual_gate", "softmax_sigmoid"},
                            {"value_residual_proj_bias", true},
                            {"value_residual_lambda2_init", 0.1},
                            {"value_residual_variant", "sparse"}});
    const json written = models::model_config_to_json(parse(keys));
    std::vector<std::string> ignored;
    CHECK(models::model_config_to_json(parse(written, &ignored)) == written);
    CHECK(ignored.empty());
    CHECK(written["architectures"][0] ==
          std::string(architecture == std::string("transformer") ? "Transformer" : architecture) + "ForCausalLM");
    CHECK(written["model_type"] == architecture);
    CHECK(written["rope_theta"] == 12345.678);
    CHECK(written["num_kv_heads"] == 2);
    CHECK(written.contains("value_residual_gate") == (written["model_type"] == "SATFormer"));
    CHECK(written.contains("value_residual_variant") == (written["model_type"] == "ResFormer"));
  }
}

}  // namespace satformer
