#include "satformer/analysis/access/collect.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "satformer/nn/hyper_connection.h"
#include "tests/satformer/analysis/support.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;

struct AccessSetting : TinyStudy {
  explicit AccessSetting(const std::string& architecture, std::vector<std::string> overrides = {})
      : TinyStudy(with_architecture(architecture, std::move(overrides))) {}
  static std::vector<std::string> with_architecture(const std::string& architecture,
                                                    std::vector<std::string> overrides) {
    overrides.push_back("model.architecture=\"" + architecture + "\"");
    return overrides;
  }
  at::Tensor parameter(const std::string& name) const {
    for (const auto& item : model->named_parameters()) {
      if (item.key() == name) return item.value();
    }
    throw std::runtime_error("no parameter " + name);
  }
  // Moves every parameter whose name has `part` away from its start.
  void disturb(const std::string& part, double size) const {
    const at::NoGradGuard no_grad;
    for (const auto& item : model->named_parameters()) {
      if (item.key().find(part) != std::string::npos) item.value().add_(at::randn_like(item.value()), size);
    }
  }
  DepthAccess access() const { return collect_depth_access(*model, stream()); }
};

}  // namespace

TEST_CASE("ResFormer's access is its lambdas and what they do to the values", "[analysis]") {
  const AccessSetting setting("resformer");
  const DepthAccess access = setting.access();
  REQUIRE(access.layers.size() == 2);
  CHECK(access.readers.empty());
  for (const StaticAccess& layer : access.layers) {
    CHECK(layer.lambda1 == Approx(1.5));  // lambda_scale 3, a softmax of two equal logits
    CHECK(layer.lambda2 == Approx(0.5));
    REQUIRE(layer.contribution.size() == 2);
    for (std::size_t head = 0; head < 2; ++head) {
      CHECK(layer.contribution[head].count() == 499);
      // Both values come from normalised inputs and like projections: about alike in length.
      CHECK(layer.contribution[head].mean() > 2.0);
      CHECK(layer.contribution[head].mean() < 4.5);
      CHECK(layer.first_share[head].mean() == Approx(0.75).margin(0.08));
    }
  }
}

TEST_CASE("DenseFormer's readers are its depth weights", "[analysis]") {
  const AccessSetting setting("denseformer");
  for (const DepthReader& reader : setting.access().readers) CHECK(reader.early_share.mean() == 0.0);
  setting.disturb("dwa_modules", 0.3);
  const DepthAccess access = setting.access();
  REQUIRE(access.readers.size() == 3);
  CHECK(access.readers[0].name == "block 1");
  CHECK(access.readers[2].name == "output");
  const at::Tensor weights = setting.parameter("model.dwa_modules.alphas.2.weight")[0].to(at::kDouble);
  double all = 0.0, early = 0.0, lookback = 0.0;
  for (std::int64_t j = 0; j < 4; ++j) {
    const double weight = weights[j].item<double>();
    CHECK(access.readers[2].sources[static_cast<std::size_t>(j)] == j);
    CHECK(access.readers[2].weights[static_cast<std::size_t>(j)].mean() == Approx(weight));
    CHECK(access.readers[2].weights[static_cast<std::size_t>(j)].standard_deviation() == Approx(0.0).margin(1e-9));
    all += std::abs(weight);
    early += j < 3 ? std::abs(weight) : 0.0;
    lookback += std::abs(weight) * static_cast<double>(3 - j);
  }
  CHECK(access.readers[2].early_share.mean() == Approx(early / all));
  CHECK(access.readers[2].lookback.mean() == Approx(lookback / all));
}

TEST_CASE("DenseFormer's readers name their sources by period and dilation", "[analysis]") {
  const AccessSetting setting("denseformer", {"dwa_dilation=2", "dwa_period=2", "num_hidden_layers=4"});
  const DepthAccess access = setting.access();
  REQUIRE(access.readers.size() == 2);
  CHECK(access.readers[0].name == "block 2");
  CHECK(access.readers[0].sources == std::vector<std::int64_t>{0, 2});
  CHECK(access.readers[1].sources == std::vector<std::int64_t>{0, 2, 4});
}

TEST_CASE("MUDDFormer's readers are the ways of each block, with weights per token", "[analysis]") {
  const AccessSetting setting("muddformer");
  setting.disturb("static_weight", 0.5);
  DepthAccess access = setting.access();
  REQUIRE(access.readers.size() == 4 + 4 + 1);
  CHECK(access.readers[0].name == "block 1 q");
  CHECK(access.readers[6].name == "block 2 v");
  CHECK(access.readers[8].name == "output");
  const at::Tensor weight = setting.parameter("model.layers.1.da.static_weight");  // w2 is zero: the weights are static
  for (std::int64_t j = 0; j < 3; ++j) {
    const Moments& moments = access.readers[6].weights[static_cast<std::size_t>(j)];
    CHECK(moments.count() == 499);
    CHECK(moments.mean() == Approx(weight[2][j].item<double>()));
    CHECK(moments.standard_deviation() == Approx(0.0).margin(1e-6));
  }
  setting.disturb("da.w2", 0.5);
  access = setting.access();
  CHECK(access.readers[6].weights[0].standard_deviation() > 1e-3);
}

TEST_CASE("a new MUDDFormer's weights are zero and have no early share", "[analysis]") {
  const DepthAccess access = AccessSetting("muddformer").access();
  CHECK(access.readers[0].weights[0].mean() == 0.0);
  CHECK(std::isnan(access.readers[0].early_share.mean()));
}

TEST_CASE("new hyper-connections read the sum of everything before", "[analysis]") {
  const AccessSetting setting("hyperconnections");
  const DepthAccess access = setting.access();
  REQUIRE(access.readers.size() == 7);  // 3 blocks of 2 modules, and the output
  REQUIRE(access.matrices.size() == 6);
  CHECK(access.matrices[1].name == "block 0 mlp");
  CHECK(access.readers[6].name == "output");
  for (std::size_t reader = 0; reader < 7; ++reader) {
    REQUIRE(access.readers[reader].weights.size() == reader + 1);
    for (const Moments& weight : access.readers[reader].weights) {
      CHECK(weight.count() == 499);
      CHECK(weight.mean() == Approx(reader == 6 ? 4.0 : 1.0));
    }
  }
  CHECK(access.readers[5].early_share.mean() == Approx(5.0 / 6));
  CHECK(access.matrices[3].alpha[0].mean() == Approx(0.0).margin(1e-12));  // module 3 reads stream 3 alone
  CHECK(access.matrices[3].alpha[15].mean() == Approx(1.0));
}

namespace {

// Runs streams of stand-in sources through the matrices of one token, in the layer's own order.
struct StreamSimulation : nn::Observer {
  at::Tensor sources, streams;     // [modules + 1, 3], [n, 3]
  std::vector<at::Tensor> inputs;  // [3] of each module
  std::int64_t tokens = 0;
  void hyper_connection(std::int64_t module, const nn::HyperConnectionObservation& seen) override {
    const at::Tensor alpha = seen.alpha[0][0].to(at::kDouble), beta = seen.beta[0][0].to(at::kDouble);
    if (module == 0) streams = sources[0].unsqueeze(0).repeat({beta.size(0), 1});
    const at::Tensor mixed = alpha.t().matmul(streams);
    inputs.push_back(mixed[0]);
    streams = mixed.slice(0, 1) + beta.unsqueeze(1) * sources[module + 1].unsqueeze(0);
  }
};

}  // namespace

TEST_CASE("the weights of hyper-connections give the modules' inputs", "[analysis]") {
  AccessSetting setting("hyperconnections", {"data.seq_length=1"});
  setting.disturb("_hc.", 0.3);
  setting.options.max_windows = 1;  // one token, so that the means over tokens are its values
  const DepthAccess access = setting.access();
  StreamSimulation simulation;
  simulation.sources = at::randn({7, 3}, at::kDouble);
  setting.stream().run(*setting.model, simulation, [](const std::vector<TokenRow>&) {});
  simulation.inputs.push_back(simulation.streams.sum(0));
  REQUIRE(access.readers.size() == 7);
  for (std::size_t reader = 0; reader < 7; ++reader) {
    at::Tensor expected = at::zeros({3}, at::kDouble);
    for (std::size_t s = 0; s <= reader; ++s) {
      expected += simulation.sources[static_cast<std::int64_t>(s)] * access.readers[reader].weights[s].mean();
    }
    CHECK((expected - simulation.inputs[reader]).abs().max().item<double>() < 1e-5);
  }
}

TEST_CASE("the matrices that are shown are those that the streams are mixed with", "[analysis]") {
  for (const bool dynamic : {true, false}) {
    nn::HyperConnection connection(
        nn::HyperConnectionOptions{.hidden_size = 8, .expansion_rate = 3, .index = 1, .dynamic = dynamic},
        at::TensorOptions().dtype(at::kFloat));
    const at::NoGradGuard no_grad;
    for (const auto& item : connection->named_parameters()) item.value().add_(at::randn_like(item.value()), 0.5);
    const at::Tensor streams = at::randn({2, 5, 3, 8});
    for (const bool fused : {true, false}) {
      const nn::HyperConnectionRead read = connection->read(streams, {.attention = {}, .fused = fused});
      const at::Tensor alpha = nn::HyperConnectionImpl::alpha({streams, connection->parameters, read});
      const at::Tensor mixed = at::matmul(alpha.transpose(-2, -1), streams);
      CHECK((mixed.select(2, 0) - read.input).abs().max().item<double>() < 1e-5);
      CHECK((mixed.slice(2, 1) - read.mixed).abs().max().item<double>() < 1e-5);
    }
  }
}
