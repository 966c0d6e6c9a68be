#include "satformer/eval/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "satformer/eval/model_input.h"
#include "satformer/runtime/precision.h"

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
  return model.loss(model_input(batch, options.device), batch.targets);
}

}  // namespace

LossTotal evaluate(models::LanguageModel& model, const data::TokenDataset& dataset, const EvaluationOptions& options) {
  const at::NoGradGuard no_grad;
  const std::int64_t seq_length = options.batch.seq_length;
  const std::int64_t windows = data::num_evaluation_windows(dataset, seq_length);
  const std::int64_t sequences =
      options.sequences > 0 ? options.sequences : std::max<std::int64_t>(1, kTokensAtATime / seq_length);
  const std::int64_t all = dataset.num_tokens() - 1;
  const std::int64_t wanted = options.max_targets > 0 ? std::min(options.max_targets, all) : all;

  // Every window but the split's last has seq_length targets.
  const std::int64_t batches = (std::min(windows, (wanted + seq_length - 1) / seq_length) + sequences - 1) / sequences;
  const at::Tensor losses = at::zeros({batches}, at::kDouble);
  double* loss_of = losses.data_ptr<double>();
  const Range own = options.world == nullptr ? Range{0, batches} : options.world->partition(batches);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t window = i * sequences;
    data::Batch batch = data::evaluation_batch(dataset, window, std::min(sequences, windows - window), options.batch);
    keep_targets(batch.targets, wanted - window * seq_length);
    const models::LossSum loss = batch_loss(model, batch, options);
    loss_of[i] = loss.loss_sum.item<double>();
    if (options.progress) options.progress(std::min(wanted, (window + sequences) * seq_length));
  }
  // Where another rank has a number, this one has 0: the sum over the ranks is exact.
  if (options.world != nullptr) options.world->all_reduce(losses, "the all-reduce of validation losses");
  return {std::accumulate(loss_of, loss_of + batches, 0.0), wanted};
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
