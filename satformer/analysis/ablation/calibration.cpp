#include "satformer/analysis/ablation/calibration.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "satformer/analysis/gates/collect.h"
#include "satformer/core/error.h"
#include "satformer/models/architectures.h"
#include "satformer/runtime/device.h"

namespace satformer::analysis {
namespace {

// Sums in float64: a gate that is the same at every token is its own mean exactly.
class MeanObserver : public nn::Observer {
 public:
  MeanObserver(const models::ModelConfig& config, bool by_token)
      : sums_(at::zeros({config.num_hidden_layers, config.num_kv_heads}, at::kDouble)) {
    if (!by_token) return;
    token_sums_ = at::zeros({config.num_hidden_layers, config.vocab_size, config.num_kv_heads}, at::kDouble);
    token_counts_ = at::zeros({config.vocab_size}, at::kDouble);
  }

  void begin_batch(const std::vector<TokenRow>& rows) {
    std::vector<std::int64_t> positions, ids;
    for (const TokenRow& row : rows) {
      positions.push_back(row.row);
      ids.push_back(row.id);
    }
    count_ += static_cast<std::int64_t>(rows.size());
    rows_ = at::tensor(positions, at::kLong);
    ids_ = at::tensor(ids, at::kLong);
    if (token_counts_.defined()) token_counts_.add_(ids_.bincount({}, token_counts_.size(0)));
  }

  void gates(std::int64_t layer, const nn::GateObservation& observation) override {
    const at::Tensor alpha = observation.alpha.flatten(0, 1).cpu().to(at::kDouble).index_select(0, rows_);
    sums_[layer].add_(alpha.sum(0));
    if (token_sums_.defined()) token_sums_[layer].index_add_(0, ids_, alpha);
  }

  void static_mix(std::int64_t layer, const nn::StaticMixObservation& observation) override {
    sums_[layer].fill_(observation.lambda1.cpu().to(at::kDouble) * static_cast<double>(count_));
  }

  GateMeans means() const {
    GateMeans result{.heads = {}, .count = count_};
    const at::Tensor heads = sums_ / static_cast<double>(count_);
    result.heads = heads.to(at::kFloat);
    if (token_sums_.defined()) {
      const at::Tensor counts = token_counts_.view({1, -1, 1});
      result.tokens = at::where(counts > 0, token_sums_ / counts, heads.unsqueeze(1)).to(at::kFloat);
    }
    return result;
  }

 private:
  at::Tensor sums_, token_sums_, token_counts_, rows_, ids_;
  std::int64_t count_ = 0;
};

}  // namespace

GateMeans calibrate_gates(models::LanguageModel& model, const TokenStream& stream, bool by_token) {
  const models::ModelConfig& config = model.config();
  const std::vector<std::int64_t> layers = mixing_layers(config);
  require(!layers.empty(), "the model ({}) multiplies first values with nothing", config.architecture);
  MeanObserver observer(config, by_token);
  stream.run(model, observer, [&observer](const std::vector<TokenRow>& rows) { observer.begin_batch(rows); });
  GateMeans means = observer.means();
  if (models::architecture_of(config).value_mix != models::ValueMixKind::kStatic) return means;
  const at::Tensor lambda1 = means.heads.index_select(0, at::tensor(layers, at::kLong));
  means.heads = lambda1.mean(at::IntArrayRef{0}).expand_as(means.heads).contiguous();
  return means;
}

}  // namespace satformer::analysis
