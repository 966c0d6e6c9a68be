#pragma once
// The tokens of a split, batch by batch, with what an analysis wants to know of each.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "satformer/analysis/tokens/classifier.h"
#include "satformer/analysis/tokens/row.h"
#include "satformer/data/batch.h"
#include "satformer/models/language_model.h"

namespace satformer::analysis {

struct StreamOptions {
  data::BatchOptions batch;
  std::int64_t max_windows = 0;    // from the split's start on; 0: all
  std::int64_t sequences = 0;      // windows in memory at a time; 0: about 4096 tokens
  c10::Device device = c10::kCPU;  // where the model is
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::int64_t max_blocks = 256;                      // of the bootstrap
  std::function<void(std::int64_t tokens)> progress;  // called with the tokens done; empty: not
};

class TokenStream {
 public:
  // The windows are those of data::evaluation_batch; every token of them is an input exactly once, but for the split's
  // last. `classifier` may be null: every token is of class 0. Error when the split holds less than one window.
  TokenStream(const data::TokenDataset& dataset, const TokenClassifier* classifier, StreamOptions options);

  std::int64_t windows() const { return windows_; }
  std::int64_t tokens() const;
  std::int64_t blocks() const;  // of consecutive windows, for the bootstrap
  const TokenClassifier* classifier() const { return classifier_; }
  const StreamOptions& options() const { return options_; }

  // All batches in order, with the tokens of each that count: all but the padding.
  void each_batch(const std::function<void(const data::Batch& batch, std::vector<TokenRow> rows)>& use) const;
  // Runs the model over all batches without gradients. `begin` is told of a batch's tokens before the model runs and
  // the observer sees its inside.
  void run(models::LanguageModel& model, nn::Observer& observer,
           const std::function<void(std::vector<TokenRow> rows)>& begin) const;

 private:
  std::vector<TokenRow> rows_of(const data::Batch& batch, std::int64_t first_window) const;

  const data::TokenDataset* dataset_;
  const TokenClassifier* classifier_;
  StreamOptions options_;
  std::int64_t windows_ = 0, windows_per_block_ = 1;
};

// What a model reads of a batch, on its device.
models::ModelInput model_input(const data::Batch& batch, c10::Device device);

}  // namespace satformer::analysis
