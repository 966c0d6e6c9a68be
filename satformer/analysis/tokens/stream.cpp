#include "satformer/analysis/tokens/stream.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "satformer/analysis/statistics/bootstrap.h"
#include "satformer/runtime/device.h"
#include "satformer/runtime/precision.h"

namespace satformer::analysis {
namespace {

constexpr std::int64_t kStreamTokens = 4096;  // in memory at a time

}  // namespace

models::ModelInput model_input(const data::Batch& batch, c10::Device device) {
  return {.input_ids = to_device(batch.input_ids, device),
          .positions = to_device(batch.positions, device),
          .document_ids = batch.document_ids};
}

TokenStream::TokenStream(const data::TokenDataset& dataset, const TokenClassifier* classifier, StreamOptions options)
    : dataset_(&dataset), classifier_(classifier), options_(std::move(options)) {
  windows_ = data::num_evaluation_windows(dataset, options_.batch.seq_length);
  if (options_.max_windows > 0) windows_ = std::min(windows_, options_.max_windows);
  windows_per_block_ = windows_per_block(windows_, options_.max_blocks);
}

std::int64_t TokenStream::tokens() const {
  return std::min(windows_ * options_.batch.seq_length, dataset_->num_tokens() - 1);
}

std::int64_t TokenStream::blocks() const { return (windows_ + windows_per_block_ - 1) / windows_per_block_; }

void TokenStream::each_batch(
    const std::function<void(const data::Batch& batch, std::vector<TokenRow> rows)>& use) const {
  const std::int64_t sequences = options_.sequences > 0
                                     ? options_.sequences
                                     : std::max<std::int64_t>(1, kStreamTokens / options_.batch.seq_length);
  for (std::int64_t window = 0; window < windows_; window += sequences) {
    const std::int64_t count = std::min(sequences, windows_ - window);
    const data::Batch batch = data::evaluation_batch(*dataset_, window, count, options_.batch);
    use(batch, rows_of(batch, window));
    if (options_.progress) options_.progress(std::min((window + count) * options_.batch.seq_length, tokens()));
  }
}

void TokenStream::run(models::LanguageModel& model, nn::Observer& observer,
                      const std::function<void(std::vector<TokenRow> rows)>& begin) const {
  each_batch([&](const data::Batch& batch, std::vector<TokenRow> rows) {
    begin(std::move(rows));
    const at::NoGradGuard no_grad;
    const AutocastGuard autocast(options_.device, options_.dtype);
    model.hidden_states(model_input(batch, options_.device), &observer);
  });
}

std::vector<TokenRow> TokenStream::rows_of(const data::Batch& batch, std::int64_t first_window) const {
  const std::int64_t length = options_.batch.seq_length, first_token = first_window * length;
  const std::int64_t count = std::min(batch.input_ids.numel(), dataset_->num_tokens() - 1 - first_token);
  const std::vector<int> classes =
      classifier_ == nullptr ? std::vector<int>() : classifier_->classify(*dataset_, first_token, count);
  const std::int64_t* ids = batch.input_ids.data_ptr<std::int64_t>();
  const std::int64_t* positions = batch.positions.defined() ? batch.positions.data_ptr<std::int64_t>() : nullptr;
  std::vector<TokenRow> rows;
  rows.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    rows.push_back({.row = i,
                    .index = first_token + i,
                    .id = ids[i],
                    .bucket = position_bucket(positions == nullptr ? i % length : positions[i]),
                    .token_class = classes.empty() ? 0 : classes[static_cast<std::size_t>(i)],
                    .block = (first_window + i / length) / windows_per_block_});
  }
  return rows;
}

}  // namespace satformer::analysis
