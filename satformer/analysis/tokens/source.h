#pragma once
// The tokens that an analysis of a checkpoint looks at: a split of token shards, or a text.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "satformer/analysis/tokens/classifier.h"
#include "satformer/analysis/tokens/stream.h"
#include "satformer/data/batch.h"
#include "satformer/data/token_dataset.h"
#include "satformer/eval/checkpoint_data.h"
#include "satformer/io/files.h"

namespace satformer::analysis {

struct TokenSourceOptions {
  eval::SplitOptions split;
  std::string text;        // a text's file instead of the split; empty: none
  std::string tokenizer;   // empty: the checkpoint's, else the data folder's
  std::string categories;  // of token classes; empty: the built-in ones
};

struct TokenSource {
  std::unique_ptr<StagedDirectory> text_shards;  // of a text; goes when this does
  std::optional<data::TokenDataset> dataset;
  std::optional<TokenClassifier> classifier;  // none without a tokenizer
  std::string name;
  data::BatchOptions batch;

  const TokenClassifier* classes() const { return classifier ? &*classifier : nullptr; }
  // The source's windows, the first that hold max_tokens (0: all). Sets `batch` and `max_windows` of the options. The
  // source must outlive the stream.
  TokenStream stream(StreamOptions options, std::int64_t max_tokens) const;
};

// Opens the tokens that the options and the checkpoint name. Error for a text without a tokenizer, for a tokenizer that
// has more pieces than the model, for a checkpoint that names no data when the options do not either.
TokenSource open_token_source(const TokenSourceOptions& options, const std::filesystem::path& checkpoint,
                              const models::ModelConfig& model);

}  // namespace satformer::analysis
