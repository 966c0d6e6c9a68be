// The exported TorchScript models against the native ones: every configuration, frozen too, in one pass and in steps,
// with interventions, through a file.
#include "satformer/exchange/torchscript.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/library.h>

#include <fstream>
#include <set>

#include "satformer/exchange/script_compiler.h"
#include "satformer/io/files.h"
#include "satformer/models/architectures.h"
#include "tests/satformer/models/model_testing.h"
#include "tests/support/folders.h"

#include "tests/catch.h"

namespace satformer::exchange {
namespace {

using models::LanguageModel;
using models::ModelConfig;
using nlohmann::json;
using torch::jit::Module;
using namespace satformer::testing;

// Largest difference of logits, relative to the largest.
constexpr double kFloatTolerance = 1e-6;
constexpr double kDoubleTolerance = 1e-13;

at::Tensor native_logits(LanguageModel& model, const at::Tensor& ids) {
  return model.logits(model.hidden_states({.input_ids = ids, .positions = {}, .document_ids = {}}));
}

// In float64 a model whose every parameter is far from trivial. In float32 a milder one, near what training starts
// from: in the other, rounding alone moves logits by more than the tolerance.
std::shared_ptr<LanguageModel> test_model(const ModelConfig& config, at::ScalarType dtype) {
  if (dtype == at::kDouble) return random_model(config, dtype);
  auto model = models::make_model(config, 7);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(7);
  for (at::Tensor& parameter : model->parameters()) {
    parameter.add_(at::randn(parameter.sizes(), generator, at::kFloat).mul_(0.05));
  }
  return model;
}

double tolerance_of(at::ScalarType dtype) { return dtype == at::kDouble ? kDoubleTolerance : kFloatTolerance; }

at::Tensor script_logits(Module& module, const at::Tensor& ids) { return module.forward({ids}).toTensor(); }

// The logits of all tokens, fed in pieces of the given lengths.
at::Tensor stepped_logits(Module& module, const at::Tensor& ids, const std::vector<std::int64_t>& lengths) {
  c10::IValue caches = c10::List<at::Tensor>();
  std::vector<at::Tensor> logits;
  std::int64_t start = 0;
  for (const std::int64_t length : lengths) {
    const auto result = module.get_method("step")({ids.narrow(1, start, length), caches}).toTuple();
    logits.push_back(result->elements()[0].toTensor());
    caches = result->elements()[1];
    start += length;
  }
  REQUIRE(start == ids.size(1));
  return at::cat(logits, 1);
}

at::Tensor gates(Module& module, const at::Tensor& ids) { return module.get_method("gates")({ids}).toTensor(); }

void intervene(Module& module, const at::Tensor& scale, const at::Tensor& shift) {
  module.get_method("set_gate_intervention")({scale, shift});
}

// float64 without LibTorch's graph optimiser, which takes seconds for each graph; the first configuration of each
// architecture also in float32 with it, and frozen (what is frozen needs it).
std::vector<at::ScalarType> dtypes_of(const NamedConfig& item, std::set<std::string>& seen) {
  if (seen.insert(item.architecture).second) return {at::kDouble, at::kFloat};
  return {at::kDouble};
}

const std::vector<std::string> kOtherMethods{"step", "gates", "set_gate_intervention"};

// What a message says: LibTorch's have many lines.
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

struct Recorder : nn::Observer {
  void gates(std::int64_t layer, const nn::GateObservation& seen) override { alpha.emplace_back(layer, seen.alpha); }
  std::vector<std::pair<std::int64_t, at::Tensor>> alpha;
};

}  // namespace

TEST_CASE("every configuration gives the model's logits, frozen too", "[exchange]") {
  const at::NoGradGuard no_grad;
  std::set<std::string> seen;
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    for (const at::ScalarType dtype : dtypes_of(item, seen)) {
      const torch::jit::GraphOptimizerEnabledGuard optimizer(dtype == at::kFloat);
      const auto model = test_model(config, dtype);
      const double tolerance = tolerance_of(dtype);
      Module module = make_torchscript(*model);
      std::vector<Module> modules{module};
      if (dtype == at::kFloat) modules.push_back(torch::jit::freeze(module));
      for (const auto& [batch, length] : std::vector<std::pair<int, int>>{{2, 11}, {1, 1}, {3, 5}, {3, 5}}) {
        const at::Tensor ids = random_ids(config, batch, length);
        const at::Tensor expected = native_logits(*model, ids);
        for (Module& each : modules) CHECK(relative_difference(script_logits(each, ids), expected) < tolerance);
      }
      for (const auto& sizes : {std::vector<std::int64_t>{2, 0}, {0, 4}}) {
        const at::Tensor logits = script_logits(module, at::zeros(sizes, at::kLong));
        CHECK(logits.sizes() == at::IntArrayRef({sizes[0], sizes[1], config.vocab_size}));
      }
    }
  }
}

TEST_CASE("steps with a cache give the logits of one pass", "[exchange]") {
  const at::NoGradGuard no_grad;
  std::set<std::string> seen;
  for (const NamedConfig& item : configurations()) {
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    for (const at::ScalarType dtype : dtypes_of(item, seen)) {
      const torch::jit::GraphOptimizerEnabledGuard optimizer(dtype == at::kFloat);
      const auto model = test_model(config, dtype);
      const double tolerance = tolerance_of(dtype);
      Module module = make_torchscript(*model);
      std::vector<Module> modules{module};
      if (dtype == at::kFloat) modules.push_back(torch::jit::freeze(module, kOtherMethods));
      const at::Tensor ids = random_ids(config, 3, 11), expected = native_logits(*model, ids);
      for (const auto& lengths : {std::vector<std::int64_t>{11}, {5, 1, 1, 4}, {1, 10}, {3, 0, 8}}) {
        for (Module& each : modules)
          CHECK(relative_difference(stepped_logits(each, ids, lengths), expected) < tolerance);
      }
    }
  }
}

TEST_CASE("gates are those that the model shows", "[exchange]") {
  const at::NoGradGuard no_grad;
  for (const NamedConfig& item : configurations()) {
    if (std::string(item.architecture) != "satformer") continue;
    INFO(item.name);
    const ModelConfig config = small_config(item.architecture, item.keys);
    const auto model = random_model(config, at::kDouble);
    Module module = make_torchscript(*model);
    const at::Tensor ids = random_ids(config, 2, 7);
    Recorder recorder;
    model->hidden_states({.input_ids = ids, .positions = {}, .document_ids = {}}, &recorder);
    if (recorder.alpha.empty()) {
      CHECK_THAT(error_of([&] { gates(module, ids); }), Catch::Contains("gates: this satformer has none"));
      continue;
    }
    at::Tensor expected = at::zeros({config.num_hidden_layers, 2, 7, config.num_kv_heads}, at::kDouble);
    std::vector<std::int64_t> layers;
    for (const auto& [layer, alpha] : recorder.alpha) {
      expected[layer].copy_(alpha);
      layers.push_back(layer);
    }
    CHECK(relative_difference(gates(module, ids), expected) < kDoubleTolerance);
    CHECK(module.attr("gate_layers").toIntVector() == layers);
  }
}

TEST_CASE("an intervention on SATFormer's gates is the model with other gates", "[exchange]") {
  const at::NoGradGuard no_grad;
  // With the identity gate: scale * (u W + b) + shift = u (scale W) + (scale b + shift).
  const ModelConfig config = small_config(
      "satformer", {{"value_residual_gate", "identity"}, {"value_residual_proj_bias", true}, {"num_kv_heads", 2}});
  const auto model = random_model(config, at::kDouble), changed = random_model(config, at::kDouble);
  Module module = make_torchscript(*model);
  const at::Tensor scale = at::arange(8, at::kDouble).view({4, 2}) / 3 - 1;
  const at::Tensor shift = at::arange(8, at::kDouble).view({4, 2}).flip(0) / 5 - 0.7;
  for (const auto& item : changed->named_parameters()) {
    const std::string& name = item.key();
    if (name.find("alpha_proj") == std::string::npos) continue;
    const std::int64_t layer = name[std::string("model.layers.").size()] - '0';
    if (name.ends_with("weight")) {
      item.value().mul_(scale[layer].unsqueeze(1));
    } else {
      item.value().mul_(scale[layer]).add_(shift[layer]);
    }
  }
  const at::Tensor ids = random_ids(config, 2, 9), before = native_logits(*model, ids);
  intervene(module, scale, shift);
  const at::Tensor expected = native_logits(*changed, ids);
  CHECK(relative_difference(before, expected) > 1e-3);
  CHECK(relative_difference(script_logits(module, ids), expected) < kDoubleTolerance);
  CHECK(relative_difference(stepped_logits(module, ids, {4, 1, 4}), expected) < kDoubleTolerance);
  Module changed_module = make_torchscript(*changed);
  CHECK(relative_difference(gates(module, ids), gates(changed_module, ids)) < kDoubleTolerance);

  // Freezing keeps the intervention, or the method that changes it.
  Module baked = torch::jit::freeze(module);
  Module frozen = torch::jit::freeze(module, kOtherMethods);
  const at::Tensor one = at::ones({}), zero = at::zeros({});
  intervene(module, one, zero);
  CHECK(relative_difference(script_logits(module, ids), before) < kDoubleTolerance);
  CHECK(relative_difference(script_logits(baked, ids), expected) < kDoubleTolerance);
  CHECK(relative_difference(script_logits(frozen, ids), expected) < kDoubleTolerance);
  intervene(frozen, one, zero);
  CHECK(relative_difference(script_logits(frozen, ids), before) < kDoubleTolerance);
}

TEST_CASE("an intervention broadcasts, and a wrong one changes nothing", "[exchange]") {
  const at::NoGradGuard no_grad;
  const ModelConfig config = small_config("satformer", {{"num_kv_heads", 2}});
  const auto model = random_model(config, at::kFloat);
  Module module = make_torchscript(*model);
  const at::Tensor ids = random_ids(config, 2, 7), before = script_logits(module, ids), seen = gates(module, ids);
  CHECK_THAT(error_of([&] { intervene(module, at::zeros({}), at::ones({3})); }), Catch::Contains("must match"));
  CHECK(at::equal(script_logits(module, ids), before));

  const at::Tensor per_layer = at::tensor({1.0, 0.5, 1.0, 2.0}, at::kFloat).view({4, 1});
  const at::Tensor per_head = at::tensor({0.25, -1.0}, at::kFloat);
  intervene(module, per_layer, per_head);
  const at::Tensor changed = gates(module, ids);
  // Layer 1 reads what nothing changed: its own gate is the old one, scaled and shifted.
  CHECK(at::allclose(changed[1], 0.5 * seen[1] + per_head, 1e-6, 1e-6));
  CHECK(changed[0].abs().max().item<float>() == 0);

  // Closed gates: the model whose gates' projections are zero.
  const auto zeroed = random_model(config, at::kDouble);
  for (const auto& item : zeroed->named_parameters()) {
    if (item.key().find("alpha_proj") != std::string::npos) item.value().zero_();
  }
  Module closed = make_torchscript(*random_model(config, at::kDouble));
  intervene(closed, at::zeros({}), at::zeros({}));
  CHECK(gates(closed, ids).abs().max().item<double>() == 0);
  CHECK(relative_difference(script_logits(closed, ids), native_logits(*zeroed, ids)) < kDoubleTolerance);
}

TEST_CASE("an intervention on ResFormer acts on lambda1", "[exchange]") {
  const at::NoGradGuard no_grad;
  const ModelConfig config = small_config("resformer", {{"num_kv_heads", 2}});
  const auto model = random_model(config, at::kDouble), changed = random_model(config, at::kDouble);
  Module module = make_torchscript(*model);
  const at::Tensor ids = random_ids(config, 2, 7);
  auto parameters = changed->named_parameters();
  at::Tensor &lambda_scale = parameters["model.lambda_manager.lambda_scale"],
             &lambda_logits = parameters["model.lambda_manager.lambda_logits"];
  const at::Tensor lambda1 = lambda_scale * at::softmax(lambda_logits, 0);
  const at::Tensor seen = gates(module, ids);
  CHECK(seen.sizes() == at::IntArrayRef({4, 2, 7, 2}));
  CHECK(seen[0].abs().max().item<double>() == 0);
  CHECK(at::allclose(seen.slice(0, 1), lambda1.view({3, 1, 1, 1}).expand({3, 2, 7, 2}), 1e-12, 1e-12));

  lambda_scale.mul_(-0.5);
  intervene(module, at::tensor(-0.5), at::zeros({}));
  CHECK(relative_difference(script_logits(module, ids), native_logits(*changed, ids)) < kDoubleTolerance);
  lambda_scale.fill_(3 * 0.75);
  lambda_logits.zero_();
  intervene(module, at::zeros({}), at::tensor(0.75));
  CHECK(relative_difference(script_logits(module, ids), native_logits(*changed, ids)) < kDoubleTolerance);
}

TEST_CASE("a file holds the model, its names and what was added", "[exchange]") {
  const at::NoGradGuard no_grad;
  const TemporaryFolder folder;
  for (const models::Architecture& architecture : models::architectures()) {
    INFO(architecture.name);
    const ModelConfig config = small_config(architecture.name);
    const auto model = test_model(config, at::kFloat);
    const std::filesystem::path path = folder.path() / "model.pt";
    const TorchScriptExport result = export_torchscript(*model, path, {{"config.json", "{}"}});
    CHECK(result.methods == std::vector<std::string>{"forward", "step", "gates", "set_gate_intervention"});
    CHECK(result.difference < kFloatTolerance);

    ExtraFiles extra{{"config.json", ""}, {"absent", ""}};
    Module module = load_torchscript(path, at::kCPU, &extra);
    CHECK(extra == ExtraFiles{{"config.json", "{}"}, {"absent", ""}});
    CHECK(module.attr("architecture").toStringRef() == architecture.name);
    std::map<std::string, at::Tensor> found;
    for (const auto& item : module.named_parameters()) found[item.name] = item.value;
    const auto expected = model->named_parameters();
    CHECK(found.size() == expected.size());
    for (const auto& item : expected) {
      INFO(item.key());
      REQUIRE(found.contains(item.key()));
      CHECK(at::equal(found[item.key()], item.value()));
      CHECK_FALSE(found[item.key()].requires_grad());
    }
    const at::Tensor ids = random_ids(config, 2, 9);
    const at::Tensor logits = native_logits(*model, ids);
    CHECK(relative_difference(script_logits(module, ids), logits) < kFloatTolerance);
    CHECK(relative_difference(stepped_logits(module, ids, {4, 5}), logits) < kFloatTolerance);
    Module frozen = torch::jit::freeze(module);
    CHECK(relative_difference(script_logits(frozen, ids), logits) < kFloatTolerance);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  }
}

TEST_CASE("the saved code calls the operators by name, one class for equal layers", "[exchange]") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "model.pt").string();
  save_torchscript(make_torchscript(*random_model(small_config("satformer"), at::kFloat)), path);
  caffe2::serialize::PyTorchStreamReader reader(path);
  std::string code;
  for (const std::string& record : reader.getAllRecords()) {
    if (!record.starts_with("code/") || !record.ends_with(".py")) continue;
    const auto [data, size] = reader.getRecord(record);
    code += std::string(static_cast<const char*>(data.get()), size);
  }
  for (const char* name : {"gated_value_mix", "qk_norm_rope_mix", "rms_norm", "add_rms_norm"}) {
    CHECK_THAT(code, Catch::Contains(std::string("ops.satformer.") + name + "("));
  }
  for (const char* name : {"Linear", "RMSNorm", "MLP", "MixingAttention", "MixingBlock", "SelectiveMix"}) {
    const std::string definition = std::string("class ") + name + "(Module)";
    INFO(definition);
    CHECK(code.find(definition) != std::string::npos);
    CHECK(code.find(definition) == code.rfind(definition));
  }
}

TEST_CASE("errors of files and inputs say what is wrong", "[exchange]") {
  const at::NoGradGuard no_grad;
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "model.pt";
  CHECK_THROWS_WITH(load_torchscript(path), Catch::EndsWith("model.pt: no such file"));
  std::ofstream(path) << "not a model";
  CHECK_THROWS_WITH(load_torchscript(path), Catch::Contains("model.pt: not a TorchScript file that can be read"));

  // An operator that nobody registers any more.
  {
    torch::Library library(torch::Library::DEF, "satformer_test", std::nullopt, __FILE__, __LINE__);
    library.def("extra(Tensor x) -> Tensor", [](const at::Tensor& x) { return x + 1; });
    models::ScriptNode node;
    node.code = "def forward(self, x: Tensor) -> Tensor:\n    return ops.satformer_test.extra(x)\n";
    save_torchscript(compile(node), path);
    CHECK(load_torchscript(path).forward({at::ones({})}).toTensor().item<double>() == 2);
  }
  const std::string message = error_of([&] { load_torchscript(path); });
  CHECK_THAT(message, Catch::Contains("calls the operator satformer_test::extra, which no library"));
  CHECK(message.find('\n') == std::string::npos);

  const ModelConfig config = small_config("denseformer");
  const auto model = random_model(config, at::kFloat);
  CHECK_THROWS_WITH(export_torchscript(*model, folder.path() / "absent" / "model.pt"), Catch::Contains("absent"));
  Module module = make_torchscript(*model);
  CHECK_THROWS_WITH(save_torchscript(module, "/dev/full"), Catch::Contains("/dev/full"));
  const at::Tensor ids = random_ids(config, 2, 5);
  CHECK_THAT(error_of([&] { script_logits(module, ids.to(at::kInt)); }), Catch::Contains("ids must be int64 [B, T]"));
  CHECK_THAT(error_of([&] { script_logits(module, ids[0]); }), Catch::Contains("ids must be int64 [B, T]"));
  CHECK_THAT(error_of([&] { gates(module, ids); }), Catch::Contains("gates: this denseformer has none"));
  CHECK_THAT(error_of([&] { intervene(module, at::ones({}), at::ones({})); }),
             Catch::Contains("set_gate_intervention: this denseformer has no gates"));
  const c10::List<at::Tensor> one_cache({at::zeros({2, 1, 4, 4})});
  CHECK_THAT(error_of([&] { module.get_method("step")({ids, one_cache}); }), Catch::Contains("caches must be []"));
}

TEST_CASE("a model that would not give the same numbers is not written", "[exchange]") {
  const at::NoGradGuard no_grad;
  const TemporaryFolder folder;
  const auto model = random_model(small_config("transformer"), at::kFloat);
  model->named_parameters()["model.norm.weight"].fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK_THROWS_WITH(export_torchscript(*model, folder.path() / "model.pt"), Catch::Contains("not written"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace satformer::exchange
