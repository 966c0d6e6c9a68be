#include "satformer/analysis/ablation/sweep.h"

#include <ATen/core/grad_mode.h>

#include <cmath>

#include "satformer/analysis/gates/collect.h"
#include "satformer/core/error.h"
#include "satformer/models/architectures.h"
#include "satformer/models/decoder.h"
#include "satformer/nn/cross_entropy.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"

namespace satformer::analysis {
namespace {

const TokenCategories* categories_of(const TokenStream& stream) {
  return stream.classifier() == nullptr ? nullptr : &stream.classifier()->categories();
}

models::ResidualDecoder& residual_decoder(models::LanguageModel& model) {
  auto* decoder = dynamic_cast<models::ResidualDecoder*>(&model);
  require(decoder != nullptr, "ablation: a {} has no gates and no lambdas to replace", model.config().architecture);
  return *decoder;
}

// One batch after the other, intact and with every selection.
class Sweep {
 public:
  Sweep(models::LanguageModel& model, const TokenStream& stream, const std::vector<GateSelection>& selections,
        GateIntervention intervention, bool reuse)
      : model_(residual_decoder(model)),
        options_(stream.options()),
        selections_(selections),
        intervention_(std::move(intervention)),
        reuse_(reuse),
        first_layer_(mixing_layers(model.config()).front()) {
    const auto blocks = static_cast<std::size_t>(stream.blocks());
    result_.targets.resize(blocks);
    result_.intact.resize(blocks);
    result_.losses.assign(selections.size(), std::vector<double>(blocks));
  }

  void run(const data::Batch& batch, const std::vector<TokenRow>& rows) {
    input_ = model_input(batch, options_.device);
    targets_ = to_device(batch.targets, options_.device);
    block_of_row_.clear();
    const std::int64_t length = batch.input_ids.size(1);
    for (std::int64_t b = 0; b < batch.input_ids.size(0); ++b) {
      const std::int64_t block = rows[static_cast<std::size_t>(b * length)].block;
      block_of_row_.push_back(static_cast<std::size_t>(block));
      result_.targets[block_of_row_.back()] += static_cast<double>(models::count_targets(batch.targets[b]));
    }
    intervention_.begin_batch(input_.input_ids, rows, rows.front().index / length);
    models::DecoderPass pass = model_.begin(input_);
    for (std::int64_t layer = 0; layer < model_.config().num_hidden_layers; ++layer) {
      for (std::size_t i = 0; i < selections_.size(); ++i) {
        if (selections_[i].layer.value_or(first_layer_) != layer) continue;
        intervention_.select(selections_[i]);
        add_losses(reuse_ ? pass : model_.begin(input_), &intervention_, result_.losses[i]);
      }
      model_.advance(pass);
    }
    add_losses(pass, nullptr, result_.intact);
    for (const std::size_t block : block_of_row_) {
      require(std::isfinite(result_.intact[block]), "ablation: the intact model's loss is not finite near token {}",
              rows.front().index);
    }
  }

  Ablation take() { return std::move(result_); }

 private:
  // The rest of a pass; each window's loss goes to its block.
  void add_losses(models::DecoderPass pass, nn::Intervention* intervention, std::vector<double>& blocks) {
    while (pass.layer < model_.config().num_hidden_layers) model_.advance(pass, nullptr, intervention);
    const at::Tensor hidden = model_.finish(pass), weight = model_.head_weight();
    for (std::size_t b = 0; b < block_of_row_.size(); ++b) {
      const auto row = static_cast<std::int64_t>(b);
      const at::Tensor loss = nn::linear_cross_entropy_sum(hidden[row], weight, targets_[row]);
      blocks[block_of_row_[b]] += loss.item<double>();
    }
  }

  models::ResidualDecoder& model_;
  const StreamOptions& options_;
  const std::vector<GateSelection>& selections_;
  GateIntervention intervention_;
  bool reuse_;
  std::int64_t first_layer_;
  models::ModelInput input_;
  at::Tensor targets_;
  std::vector<std::size_t> block_of_row_;
  Ablation result_;
};

}  // namespace

std::string_view scope_name(AblationScope scope) {
  switch (scope) {
    case AblationScope::all:
      return "all";
    case AblationScope::layer:
      return "layer";
    case AblationScope::head:
      return "head";
    default:
      return "category";
  }
}

std::vector<GateSelection> selections(const models::ModelConfig& config, AblationScope scope,
                                      const TokenCategories* categories) {
  const std::vector<std::int64_t> layers = mixing_layers(config);
  require(!layers.empty(), "ablation: the model ({}) mixes first values in no layer", config.architecture);
  if (scope == AblationScope::all) return {GateSelection{}};
  std::vector<GateSelection> result;
  if (scope == AblationScope::category) {
    require(categories != nullptr, "ablation: the scope category needs a tokenizer, to tell the classes of tokens");
    for (int group = 0; group < static_cast<int>(categories->groups().size()); ++group) {
      result.push_back({.layer = {}, .head = {}, .group = group});
    }
    return result;
  }
  for (const std::int64_t layer : layers) {
    if (scope == AblationScope::layer) {
      result.push_back({.layer = layer, .head = {}, .group = {}});
      continue;
    }
    for (std::int64_t head = 0; head < config.num_kv_heads; ++head) {
      result.push_back({.layer = layer, .head = head, .group = {}});
    }
  }
  return result;
}

Ablation ablate(models::LanguageModel& model, const TokenStream& stream, std::vector<GateSelection> selections,
                const GateMeans* means, const AblationOptions& options) {
  const InterventionMode mode = options.rule.mode;
  require(models::architecture_of(model.config()).value_mix != models::ValueMixKind::kStatic ||
              (mode != InterventionMode::token_mean && mode != InterventionMode::shuffle),
          "ablation: a ResFormer's lambda1 is the same for every token, {} does not change it: zero, mean or scale",
          mode_name(mode));
  Sweep sweep(model, stream, selections, GateIntervention(options.rule, means, categories_of(stream)), options.reuse);
  stream.each_batch([&](const data::Batch& batch, const std::vector<TokenRow>& rows) {
    const at::NoGradGuard no_grad;
    const AutocastGuard autocast(stream.options().device, stream.options().dtype);
    sweep.run(batch, rows);
  });
  Ablation result = sweep.take();
  result.selections = std::move(selections);
  return result;
}

}  // namespace satformer::analysis
