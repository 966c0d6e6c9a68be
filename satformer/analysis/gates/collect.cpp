#include "satformer/analysis/gates/collect.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/models/architectures.h"

namespace satformer::analysis {
namespace {

// [B, T, H] of [B, T, H, hd], float32.
at::Tensor head_norms(const at::Tensor& values) {
  return at::linalg_vector_norm(values, 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kFloat);
}

std::span<const float> floats(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

class GateObserver : public nn::Observer {
 public:
  explicit GateObserver(GateCollector& collector) : collector_(collector) {}

  void gates(std::int64_t layer, const nn::GateObservation& observation) override {
    const auto& layers = collector_.shape().layers;
    const std::int64_t index = std::find(layers.begin(), layers.end(), layer) - layers.begin();
    const at::Tensor alpha = observation.alpha.to(at::kFloat);
    const at::Tensor contribution = alpha.abs() * head_norms(observation.first_values) / head_norms(observation.values);
    const at::Tensor alpha_here = alpha.cpu().contiguous(), contribution_here = contribution.cpu().contiguous();
    collector_.add(index, floats(alpha_here), floats(contribution_here));
  }

 private:
  GateCollector& collector_;
};

}  // namespace

std::vector<std::int64_t> mixing_layers(const models::ModelConfig& config) {
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    if (config.mixes_values(layer)) layers.push_back(layer);
  }
  return layers;
}

std::vector<std::int64_t> gated_layers(const models::ModelConfig& config) {
  const bool selective = models::architecture_of(config).value_mix == models::ValueMixKind::kSelective;
  return selective ? mixing_layers(config) : std::vector<std::int64_t>();
}

GateCollector collect_gates(models::LanguageModel& model, const TokenStream& stream,
                            const GateCollectOptions& options) {
  const models::ModelConfig& config = model.config();
  GateShape shape{.layers = gated_layers(config),
                  .heads = config.num_kv_heads,
                  .vocab_size = config.vocab_size,
                  .position_buckets = position_bucket(stream.options().batch.seq_length - 1) + 1,
                  .classes = 0,
                  .blocks = stream.blocks(),
                  .text_tokens = std::min(options.text_tokens, stream.tokens())};
  require(!shape.layers.empty(), "the model ({}) has no gates", config.architecture);
  if (stream.classifier() != nullptr) {
    shape.classes = static_cast<std::int64_t>(stream.classifier()->categories().classes().size());
  }
  GateCollector collector(std::move(shape), options.gates);
  GateObserver observer(collector);
  stream.run(model, observer, [&collector](std::vector<TokenRow> rows) { collector.begin_batch(std::move(rows)); });
  return collector;
}

}  // namespace satformer::analysis
