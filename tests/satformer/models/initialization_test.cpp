// Parameter names, counts and initial values.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "satformer/models/architectures.h"
#include "satformer/models/language_model.h"
#include "tests/satformer/models/model_testing.h"

#include "tests/catch.h"
#include "tests/paths.h"

namespace satformer {
namespace {

using testing::small_config;

std::set<std::string> names(models::LanguageModel& model) {
  std::set<std::string> result;
  for (const auto& item : model.named_parameters()) result.insert(item.key());
  return result;
}

}  // namespace

TEST_CASE("the shipped sizes have the published numbers of parameters", "[models]") {
  struct Size {
    const char* name;
    std::int64_t transformer, satformer, resformer, denseformer, muddformer, hyperconnections;  // all but one: added
  };
  for (const Size& size : {Size{"small", 128404096, 92160, 21, 77, 324912, 118844},
                           Size{"medium", 334798080, 278528, 35, 189, 1051620, 258984},
                           Size{"large", 766440320, 663552, 37, 209, 1724136, 409564},
                           Size{"xl", 1298764800, 1507328, 47, 324, 3533158, 689376}}) {
    for (const auto& [architecture, expected] :
         std::map<std::string, std::int64_t>{{"transformer", size.transformer},
                                             {"satformer", size.transformer + size.satformer},
                                             {"resformer", size.transformer + size.resformer},
                                             {"denseformer", size.transformer + size.denseformer},
                                             {"muddformer", size.transformer + size.muddformer},
                                             {"hyperconnections", size.transformer + size.hyperconnections}}) {
      const std::string path = testing::source_dir().string() + "/configs/" + architecture + "/" + size.name + ".json";
      INFO(path);
      std::ifstream stream(path);
      REQUIRE(stream.good());
      const auto config = nlohmann::json::parse(stream);
      const models::ModelConfig model_config = models::model_config_from_json(
          config["model"]["config_overrides"], config["model"]["class_name"].get<std::string>(), path);
      CHECK(model_config.architecture == architecture);
      CHECK(models::make_uninitialized_model(model_config, c10::Device(c10::kMeta))->num_parameters() == expected);
    }
  }
}

TEST_CASE("shipped configurations of one size differ in the architecture alone", "[models]") {
  const auto load = [](const std::string& name) {
    std::ifstream stream(testing::source_dir().string() + "/configs/" + name);
    auto config = nlohmann::json::parse(stream);
    config["model"].erase("class_name");
    config["checkpointing"].erase("checkpoint_dir");
    auto& keys = config["model"]["config_overrides"];
    for (const models::Architecture& architecture : models::architectures()) {
      for (const models::ModelKey& row : architecture.keys) keys.erase(row.key.path);
    }
    return config;
  };
  for (const char* size : {"small", "medium", "large", "xl"}) {
    const auto file = std::string("/") + size + ".json";
    for (const models::Architecture& architecture : models::architectures()) {
      CHECK(load("transformer" + file) == load(architecture.name + file));
    }
  }
}

TEST_CASE("weight decay acts on the projections and the head, in every architecture", "[models]") {
  const std::set<std::string> decayed_layers{"q_proj",    "k_proj",  "v_proj",    "o_proj",
                                             "gate_proj", "up_proj", "down_proj", "lm_head"};
  for (const testing::NamedConfig& item : testing::configurations()) {
    INFO(item.name);
    const auto model = models::make_uninitialized_model(small_config(item.architecture, item.keys));
    std::set<std::string> expected;
    for (const auto& parameter : model->named_parameters()) {
      const std::string& name = parameter.key();
      const std::string layer = name.substr(0, name.rfind('.'));
      const bool listed = decayed_layers.contains(layer.substr(layer.rfind('.') + 1));
      if (name.ends_with(".weight") && parameter.value().dim() == 2 && listed) expected.insert(name);
    }
    CHECK(model->decayed_parameters() == expected);
  }
}

TEST_CASE("every architecture has configurations that the tests run", "[models]") {
  for (const models::Architecture& architecture : models::architectures()) {
    INFO(architecture.name);
    CHECK(std::any_of(testing::configurations().begin(), testing::configurations().end(),
                      [&](const testing::NamedConfig& item) { return item.architecture == architecture.name; }));
  }
}

TEST_CASE("parameters have the checkpoint's names", "[models]") {
  const auto transformer = models::make_model(small_config("transformer", {{"num_hidden_layers", 1}}), 1);
  CHECK(names(*transformer) ==
        std::set<std::string>{"model.embeddings.weight", "model.norm.weight", "model.layers.0.attn_norm.weight",
                              "model.layers.0.mlp_norm.weight", "model.layers.0.attn.q_proj.weight",
                              "model.layers.0.attn.k_proj.weight", "model.layers.0.attn.v_proj.weight",
                              "model.layers.0.attn.o_proj.weight", "model.layers.0.attn.q_norm.weight",
                              "model.layers.0.attn.k_norm.weight", "model.layers.0.mlp.gate_proj.weight",
                              "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight"});
  const auto extra = [](const std::string& architecture, nlohmann::json keys) {
    keys["num_hidden_layers"] = 3;
    const auto base = names(*models::make_model(small_config("transformer", {{"num_hidden_layers", 3}}), 1));
    auto all = names(*models::make_model(small_config(architecture, keys), 1));
    for (const std::string& name : base) CHECK(all.erase(name) == 1);
    return all;
  };
  using Names = std::set<std::string>;
  const std::string mixer = ".attn.value_residual_mixing.";
  CHECK(extra("satformer", {}) ==
        Names{"model.layers.1" + mixer + "alpha_proj.weight", "model.layers.2" + mixer + "alpha_proj.weight"});
  CHECK(extra("satformer", {{"value_residual_last_k", 1}, {"value_residual_proj_bias", true}}) ==
        Names{"model.layers.2" + mixer + "alpha_proj.weight", "model.layers.2" + mixer + "alpha_proj.bias"});
  CHECK(extra("satformer", {{"use_value_residual", false}}).empty());
  CHECK(extra("resformer", {{"value_residual_last_k", 1}}) == Names{"model.lambda_manager.lambda_scale",
                                                                    "model.lambda_manager.lambda_logits",
                                                                    "model.layers.2" + mixer + "lambda2"});
  CHECK(extra("resformer", {{"value_residual_variant", "constant"}}).empty());
  CHECK(extra("resformer", {{"use_value_residual", false}}).empty());
  CHECK(extra("transformer", {{"tie_word_embeddings", false}}) == Names{"lm_head.weight"});
  CHECK(extra("transformer", {{"qkv_bias", true}}).size() == 9);
}

TEST_CASE("initial values", "[models]") {
  const nlohmann::json keys{{"hidden_size", 128}, {"intermediate_size", 384},         {"vocab_size", 2000},
                            {"qkv_bias", true},   {"value_residual_proj_bias", true}, {"initializer_range", 0.05}};
  const auto model = models::make_model(small_config("satformer", keys), 3);
  for (const auto& item : model->named_parameters()) {
    INFO(item.key());
    const at::Tensor& parameter = item.value();
    CHECK(parameter.scalar_type() == at::kFloat);
    CHECK(parameter.requires_grad());
    if (item.key().ends_with("bias")) {
      CHECK(parameter.eq(0).all().item<bool>());
    } else if (item.key().find("norm") != std::string::npos) {
      CHECK(parameter.eq(1).all().item<bool>());
    } else {
      const double n = static_cast<double>(parameter.numel());
      const at::Tensor scaled = parameter.detach().to(at::kDouble) / 0.05;
      CHECK(std::abs(scaled.mean().item<double>()) < 5 / std::sqrt(n));
      CHECK(std::abs(scaled.square().mean().item<double>() - 1) < 5 * std::sqrt(2 / n));
      CHECK(std::abs(scaled.pow(4).mean().item<double>() - 3) < 5 * std::sqrt(96 / n));
    }
  }
  const auto resformer = models::make_model(small_config("resformer"), 3)->named_parameters();
  CHECK(resformer["model.lambda_manager.lambda_scale"].item<double>() == 4);
  CHECK(resformer["model.lambda_manager.lambda_logits"].eq(0).all().item<bool>());
  CHECK(resformer["model.layers.2.attn.value_residual_mixing.lambda2"].item<double>() == 0.5);
}

TEST_CASE("initial values depend on seed and name alone", "[models]") {
  const auto values = [](const char* architecture, std::uint64_t seed) {
    return models::make_model(small_config(architecture, {{"vocab_size", 500}}), seed)->named_parameters();
  };
  const auto transformer = values("transformer", 5), satformer = values("satformer", 5);
  const auto resformer = values("resformer", 5), other = values("transformer", 6);
  for (const auto& item : transformer) {
    INFO(item.key());
    CHECK(at::equal(item.value(), satformer[item.key()]));
    CHECK(at::equal(item.value(), resformer[item.key()]));
    const bool random = item.key().find("norm") == std::string::npos;
    CHECK(at::equal(item.value(), other[item.key()]) != random);
  }
  CHECK(!at::equal(transformer["model.layers.0.attn.q_proj.weight"], transformer["model.layers.1.attn.q_proj.weight"]));
  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 2 : 1);
  CHECK(at::equal(values("transformer", 5)["model.embeddings.weight"], transformer["model.embeddings.weight"]));
  at::set_num_threads(threads);
  // Stated here so that a change of the stream does not pass unseen.
  const auto first = transformer["model.embeddings.weight"].flatten().slice(0, 0, 3);
  INFO(first[0].item<double>() << " " << first[1].item<double>() << " " << first[2].item<double>());
  CHECK(at::allclose(first, at::tensor({-0.0120827, 0.0341655, -0.00998653}, at::kFloat), 0, 1e-7));
}

}  // namespace satformer
