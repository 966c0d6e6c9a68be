#include "satformer/analysis/access/collect.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "satformer/models/architectures.h"

namespace satformer::analysis {
namespace {

constexpr std::array<const char*, 4> kWays{"q", "k", "v", "r"};
constexpr std::array<const char*, 2> kModules{"attention", "mlp"};

// Merges the columns of `values` [N, K] into K moments.
void add_columns(std::vector<Moments>& moments, const at::Tensor& values) {
  const at::Tensor x = values.to(at::kCPU, at::kDouble);
  const at::Tensor mean = x.mean(0), difference = x - mean;
  const at::Tensor squares = (difference * difference).sum(0);
  moments.resize(static_cast<std::size_t>(x.size(1)));
  for (std::int64_t k = 0; k < x.size(1); ++k) {
    moments[static_cast<std::size_t>(k)].merge({x.size(0), mean[k].item<double>(), squares[k].item<double>()});
  }
}

void add_values(Moments& moments, const at::Tensor& values) {
  std::vector<Moments> columns;
  add_columns(columns, values.reshape({-1, 1}));
  moments.merge(columns.front());
}

// One reader's weights [N, S], the newest source last.
void add_weights(DepthReader& reader, const at::Tensor& weights) {
  add_columns(reader.weights, weights);
  const at::Tensor magnitude = weights.to(at::kDouble).abs(), sum = magnitude.sum(1);
  const at::Tensor distance =
      at::arange(magnitude.size(1) - 1, -1, -1, magnitude.options());  // of each source from the newest
  const at::Tensor used = sum.gt(0);
  if (!used.any().item<bool>()) return;  // MUDDFormer starts with weights of zero
  const at::Tensor early = magnitude.slice(1, 0, -1).sum(1) / sum;
  add_values(reader.early_share, early.masked_select(used));
  add_values(reader.lookback, (at::matmul(magnitude, distance) / sum).masked_select(used));
}

class AccessObserver : public nn::Observer {
 public:
  explicit AccessObserver(std::int64_t num_layers) : num_layers_(num_layers) {}

  void begin_batch(std::int64_t tokens) {
    tokens_ = tokens;
    held_.clear();
  }
  DepthAccess finish();

  void static_mix(std::int64_t layer, const nn::StaticMixObservation& observation) override {
    StaticAccess& access = layers_[layer];
    access.layer = layer;
    access.lambda1 = observation.lambda1.item<double>();
    access.lambda2 = observation.lambda2.item<double>();
    const at::Tensor first = norms(observation.first_values) * std::abs(access.lambda1);
    const at::Tensor own = norms(observation.values) * std::abs(access.lambda2);
    add_columns(access.contribution, first / own);
    add_columns(access.first_share, first / (first + own));
  }

  void depth_weights(std::int64_t layer, const nn::DepthWeightsObservation& observation) override {
    const bool per_token = observation.weights.dim() == 4;
    const at::Tensor weights = per_token ? counted(observation.weights) : observation.weights.unsqueeze(0);
    const std::int64_t ways = weights.size(1);
    for (std::int64_t way = 0; way < ways; ++way) {
      const std::int64_t block = layer + 1;
      DepthReader& reader = readers_[{block, way}];
      reader.layer = block;
      reader.name = block == num_layers_ ? "output"
                    : ways == 1          ? fmt::format("block {}", block)
                                         : fmt::format("block {} {}", block, kWays.at(static_cast<std::size_t>(way)));
      reader.sources.clear();
      for (std::int64_t s = 0; s < weights.size(2); ++s) {
        reader.sources.push_back(observation.first_source + s * observation.stride);
      }
      add_weights(reader, weights.select(1, way));
    }
  }

  void hyper_connection(std::int64_t module, const nn::HyperConnectionObservation& observation) override {
    const at::Tensor alpha = counted(observation.alpha), beta = counted(observation.beta);
    if (held_.empty()) held_.push_back(at::ones_like(beta));  // every stream starts as the embedding
    ConnectionMatrices& matrices = matrices_[module];
    matrices.name = fmt::format("block {} {}", module / 2, kModules.at(static_cast<std::size_t>(module % 2)));
    add_columns(matrices.alpha, alpha.flatten(1));
    add_columns(matrices.beta, beta);
    const at::Tensor held = at::stack(held_, 1);  // [N, sources, n]
    add_reader({module, 0}, matrices.name, module / 2, at::matmul(held, alpha.select(2, 0).unsqueeze(-1)).squeeze(-1));
    held_ = at::matmul(held, alpha.slice(2, 1)).unbind(1);
    held_.push_back(beta);
    if (module == 2 * num_layers_ - 1) add_reader({module + 1, 0}, "output", num_layers_, at::stack(held_, 1).sum(2));
  }

 private:
  // A module or block, and its way of reading.
  using ReaderKey = std::pair<std::int64_t, std::int64_t>;

  void add_reader(ReaderKey key, const std::string& name, std::int64_t layer, const at::Tensor& weights) {
    DepthReader& reader = readers_[key];
    reader.name = name;
    reader.layer = layer;
    reader.sources.clear();
    for (std::int64_t s = 0; s < weights.size(1); ++s) reader.sources.push_back(s);
    add_weights(reader, weights);
  }

  // [B, T, ...] -> [N, ...], the tokens that count (the padding is at the end); float64, which autocast leaves alone.
  at::Tensor counted(const at::Tensor& values) const {
    return values.to(at::kDouble).flatten(0, 1).slice(0, 0, tokens_);
  }
  at::Tensor norms(const at::Tensor& values) const {
    return counted(at::linalg_vector_norm(values, 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kFloat));
  }

  std::int64_t num_layers_, tokens_ = 0;
  std::vector<at::Tensor> held_;  // by source: how much of it each stream holds, [N, n]
  std::map<std::int64_t, StaticAccess> layers_;
  std::map<ReaderKey, DepthReader> readers_;
  std::map<std::int64_t, ConnectionMatrices> matrices_;
};

DepthAccess AccessObserver::finish() {
  DepthAccess access;
  for (auto& [unused, layer] : layers_) access.layers.push_back(std::move(layer));
  for (auto& [unused, reader] : readers_) access.readers.push_back(std::move(reader));
  for (auto& [unused, matrices] : matrices_) access.matrices.push_back(std::move(matrices));
  return access;
}

}  // namespace

DepthAccess collect_depth_access(models::LanguageModel& model, const TokenStream& stream) {
  const models::AccessKind access = models::architecture_of(model.config()).access;
  if (access == models::AccessKind::kNone || access == models::AccessKind::kSelectiveValueMix) return {};
  AccessObserver observer(model.config().num_hidden_layers);
  stream.run(model, observer, [&observer](const std::vector<TokenRow>& rows) {
    observer.begin_batch(static_cast<std::int64_t>(rows.size()));
  });
  return observer.finish();
}

}  // namespace satformer::analysis
