// The attention module on both paths: values and gradients agree, for one source and three, every kind of mix, grouped
// heads, masks and positions; what a mix needs is asked for. (The equations themselves: tests/satformer/models.)
#include "satformer/nn/attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "satformer/fused/shared_gradient.h"

#include "tests/catch.h"

namespace satformer::nn {
namespace {

constexpr std::int64_t kBatch = 2, kLength = 7, kWidth = 16;
const at::TensorOptions kTensors(at::kDouble);

at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, kTensors).requires_grad_(true); }

// The parts of one attention, with random parameters and inputs.
struct Case {
  explicit Case(AttentionOptions options, std::shared_ptr<ValueMixer> mixer = nullptr)
      : attention(options, std::move(mixer), kTensors), count(options.separate_sources ? 3 : 1) {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : attention->parameters()) parameter.normal_(0, 0.5);
    for (std::size_t i = 0; i < count; ++i) {
      norms.emplace_back(RMSNormOptions{kWidth, 1e-6}, kTensors);
      streams.push_back({random({kBatch, kLength, kWidth}), i == 1 ? at::Tensor() : random({kBatch, kLength, kWidth})});
    }
    first_values = random({kBatch, kLength, options.num_kv_heads, options.head_dim()});
    lambda1 = random({});
  }

  LayerContext context(bool fused, std::optional<std::int64_t> window = {}, const at::Tensor& documents = {}) const {
    const at::Tensor& hidden = streams.front().sum;
    return {.attention = make_attention_context(hidden, {}, documents,
                                                {.head_dim = attention->options().head_dim(), .window_size = window}),
            .layer = 3,
            .fused = fused};
  }

  AttentionOutput run(const LayerContext& context) {
    std::vector<AttentionSource> sources;
    for (std::size_t i = 0; i < count; ++i) sources.push_back({streams[i], norms[i]});
    return attention->forward(sources, {first_values, lambda1}, context);
  }

  std::vector<at::Tensor> leaves() const {
    std::vector<at::Tensor> all = attention->parameters();
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(streams[i].sum);
      if (streams[i].pending.defined()) all.push_back(streams[i].pending);
      all.push_back(norms[i]->weight);
    }
    all.insert(all.end(), {first_values, lambda1});
    return all;
  }

  Attention attention;
  std::size_t count;
  std::vector<RMSNorm> norms;
  std::vector<ResidualStream> streams;
  at::Tensor first_values, lambda1;
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined() ? 0 : 1e9;
  return (a - b).abs().max().item<double>();
}

void check_paths_agree(Case& item, std::optional<std::int64_t> window, const at::Tensor& documents) {
  std::vector<std::vector<at::Tensor>> outputs, gradients;
  for (const bool fused : {true, false}) {
    const AttentionOutput out = item.run(item.context(fused, window, documents));
    at::Tensor loss = (out.hidden * out.hidden).sum() + out.sum.sin().sum();
    if (out.values.defined()) loss = loss + out.values.cos().sum();
    gradients.push_back(torch::autograd::grad({loss}, item.leaves(), {}, {}, false, /*allow_unused=*/true));
    outputs.push_back({out.hidden, out.sum, out.values});
  }
  for (std::size_t i = 0; i < outputs[0].size(); ++i) {
    INFO("output " << i);
    CHECK(difference(outputs[0][i], outputs[1][i]) < 1e-12);
  }
  for (std::size_t i = 0; i < gradients[0].size(); ++i) {
    INFO("gradient " << i);
    CHECK(difference(gradients[0][i], gradients[1][i]) < 1e-10);
  }
}

std::vector<std::shared_ptr<ValueMixer>> mixers(std::int64_t kv_heads) {
  std::vector<std::shared_ptr<ValueMixer>> all{nullptr, std::make_shared<FixedMixerImpl>(FixedMixOptions{2.0, 1.0}),
                                               std::make_shared<StaticMixerImpl>(StaticMixOptions{}, kTensors)};
  for (const Gate gate : {Gate::kRelu, Gate::kSoftmaxSigmoid}) {
    all.push_back(std::make_shared<SelectiveMixerImpl>(SelectiveMixOptions{kWidth, kv_heads, gate, gate == Gate::kRelu},
                                                       kTensors));
  }
  return all;
}

}  // namespace

TEST_CASE("attention is the same on both paths", "[nn][plain]") {
  const at::Tensor documents = at::tensor({0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 2, 2}, at::kLong).view({2, kLength});
  for (const std::int64_t kv_heads : {4, 2, 1}) {
    for (const bool qk_norm : {false, true}) {
      for (std::shared_ptr<ValueMixer>& mixer : mixers(kv_heads)) {
        INFO(kv_heads << " KV heads, qk_norm " << qk_norm << ", mixer " << (mixer ? mixer->name() : "none"));
        Case item({.hidden_size = kWidth,
                   .num_heads = 4,
                   .num_kv_heads = kv_heads,
                   .qkv_bias = kv_heads == 2,
                   .qk_norm = qk_norm,
                   .returns_values = true},
                  mixer);
        check_paths_agree(item, std::nullopt, {});
        check_paths_agree(item, 3, {});
        check_paths_agree(item, std::nullopt, documents);
      }
    }
  }
}

TEST_CASE("attention of three sources is the same on both paths", "[nn][plain]") {
  Case item({.hidden_size = kWidth, .num_heads = 4, .num_kv_heads = 2, .qk_norm = true, .separate_sources = true});
  check_paths_agree(item, std::nullopt, {});
  check_paths_agree(item, 2, {});
  CHECK_THROWS_WITH(item.attention->forward({{item.streams[0], item.norms[0]}}, {}, item.context(true)),
                    Catch::Contains("expected 3 sources, got 1"));
}

TEST_CASE("a layer that mixes needs the first values", "[nn]") {
  for (const bool fused : {true, false}) {
    Case item({.hidden_size = kWidth, .num_heads = 4, .num_kv_heads = 4}, mixers(4).back());
    CHECK_THROWS_WITH(item.attention->forward({{item.streams[0], item.norms[0]}}, {}, item.context(fused)),
                      Catch::Contains("layer 3 mixes values, but got no first_values"));
    CHECK_FALSE(item.run(item.context(fused)).values.defined());
  }
}

TEST_CASE("the gradient of shared first values is added to their buffer", "[nn]") {
  Case item({.hidden_size = kWidth, .num_heads = 4, .num_kv_heads = 2}, mixers(2).back());
  const at::Tensor leaf = item.first_values;
  const auto gradient = [&] {
    const at::Tensor once = item.run(item.context(true)).hidden.square().sum();
    return torch::autograd::grad({once + item.run(item.context(true)).hidden.sin().sum()}, {leaf})[0];
  };
  const at::Tensor expected = gradient();
  item.first_values = fused::fan_out(leaf);
  CHECK(difference(gradient(), expected) < 1e-12);
}

}  // namespace satformer::nn
