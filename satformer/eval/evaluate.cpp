#include "satformer/eval/evaluate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "satformer/core/device.h"
#include "satformer/core/error.h"
#include "satformer/core/precision.h"

namespace satformer::eval {
namespace {

constexpr std::int64_t kTokensAtATime = 4096;

// Marks all but the first `wanted` targets of a batch (row by row) as ignored.
void keep_targets(at::Tensor& targets, std::int64_t wanted) {
  std::int64_t* target = targets.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    if (target[i] == models::kIgnoreIndex) continue;
    if (wanted > 0) {
      --wanted;
    } else {
      target[i] = models::kIgnoreIndex;
    }
  }
}

models::LossSum batch_loss(models::LanguageModel& model, const data::Batch& batch, const EvaluationOptions& options) {
  const AutocastGuard autocast(options.device, options.dtype);
  return model.loss({.input_ids = to_device(batch.input_ids, options.device),
                     .positions = to_device(batch.positions, options.device),
                     .document_ids = batch.document_ids},
                    batch.targets);
}

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss()); }

double Evaluation::bits_per_byte(std::int64_t bytes) const {
  return loss_sum / std::numbers::ln2 / static_cast<double>(bytes);
}

Evaluation evaluate(models::LanguageModel& model, const data::TokenDataset& dataset, const EvaluationOptions& options) {
  const at::NoGradGuard no_grad;
  const std::int64_t seq_length = options.batch.seq_length;
  require_window(dataset, seq_length, "the split");
  const std::int64_t sequences =
      options.sequences > 0 ? options.sequences : std::max<std::int64_t>(1, kTokensAtATime / seq_length);
  const std::int64_t windows = data::num_evaluation_windows(dataset, seq_length);
  const std::int64_t all = dataset.num_tokens() - 1;
  const std::int64_t wanted = options.max_targets > 0 ? std::min(options.max_targets, all) : all;

  Evaluation result;
  for (std::int64_t window = 0; window < windows && result.targets < wanted; window += sequences) {
    data::Batch batch = data::evaluation_batch(dataset, window, std::min(sequences, windows - window), options.batch);
    keep_targets(batch.targets, wanted - result.targets);
    const models::LossSum loss = batch_loss(model, batch, options);
    result.loss_sum += loss.loss_sum.item<double>();
    result.targets += loss.num_targets;
    if (options.progress) options.progress(result.targets);
  }
  return result;
}

void require_window(const data::TokenDataset& dataset, std::int64_t seq_length, const std::string& name) {
  require(dataset.num_tokens() > seq_length,
          "{} has {} tokens; one window of seq_length {} needs {}: use more text or a smaller seq_length", name,
          dataset.num_tokens(), seq_length, seq_length + 1);
}

std::int64_t target_bytes(const data::TokenDataset& dataset, const data::Tokenizer& tokenizer) {
  std::int64_t bytes = 0;
  std::vector<std::int64_t> ids(kTokensAtATime);
  for (std::int64_t begin = 1; begin < dataset.num_tokens(); begin += kTokensAtATime) {
    ids.resize(static_cast<std::size_t>(std::min(kTokensAtATime, dataset.num_tokens() - begin)));
    dataset.read(begin, ids);
    for (const std::int64_t id : ids) bytes += tokenizer.piece_bytes(id);
  }
  return bytes;
}

}  // namespace satformer::eval
