#include "satformer/train/training_result.h"

#include <optional>

#include "satformer/eval/loss_total.h"

namespace satformer::train {
namespace {

nlohmann::json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

nlohmann::json to_json(const TrainingResult& result) {
  const checkpoint::TrainerState& state = result.state;
  const nlohmann::json perplexity = state.val_loss ? nlohmann::json(eval::perplexity(*state.val_loss)) : nullptr;
  return {{"steps", state.step},
          {"tokens", state.tokens},
          {"train_loss", number_or_null(state.train_loss)},
          {"val_loss", number_or_null(state.val_loss)},
          {"val_perplexity", perplexity},
          {"tokens_per_second", result.tokens_per_second},
          {"parameters", result.parameters},
          {"checkpoint", result.checkpoint.string()},
          {"skipped_steps", state.skipped_steps},
          {"stopped", result.stopped}};
}

}  // namespace satformer::train
