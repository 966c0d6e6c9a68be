#pragma once
// From text files to tokenised shards. The input is streamed twice: the first pass checks everything and counts, so
// that the second can split exactly; nothing is written before the first has succeeded. Memory is bounded whatever
// the input's size (docs/data.md states the bound).
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "satformer/data/corpus.h"
#include "satformer/data/token_dataset.h"
#include "satformer/data/tokenizer.h"

namespace satformer::data {

struct PrepareOptions {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path output;  // a new or empty folder, or with `overwrite` one of an earlier run
  bool overwrite = false;
  CorpusOptions corpus;

  std::optional<std::filesystem::path> tokenizer;  // an existing model; otherwise one is trained:
  TokenizerTraining training;
  std::int64_t tokenizer_sample_bytes = std::int64_t{32} << 20;  // text to train on, bookkeeping included

  double val_fraction = 0.01;  // of the documents, in (0, 1); at least one document
  std::uint64_t seed = 0;      // of the split and the tokenizer's sample
  std::int64_t shard_tokens = 100'000'000;
  std::optional<std::int64_t> eot_id;  // instead of the tokenizer's end id
  std::int64_t seq_length = 0;         // both splits must hold a window of it (0: of 1)
  int threads = 0;                     // tokenizers; 0: as many as the machine has
  std::function<bool()> should_stop;   // asked now and then; true ends with an Error and nothing written
};

struct PrepareResult {
  DatasetInfo info;
  std::int64_t empty_documents = 0;  // skipped
  std::int64_t train_shards = 0, val_shards = 0;
  bool trained_tokenizer = false;
  double seconds = 0;           // everything
  double tokenize_seconds = 0;  // the second pass

  std::int64_t documents() const { return info.train.documents + info.val.documents; }
  std::int64_t tokens() const { return info.train.tokens + info.val.tokens; }
  std::int64_t bytes() const { return info.train.bytes + info.val.bytes; }
  double tokens_per_second() const { return static_cast<double>(tokens()) / tokenize_seconds; }
};

// Writes train_*.bin, val_*.bin, tokenizer.model and dataset.json. The folder appears whole or not at all. Error names
// what is wrong with the input, the tokenizer, the sizes or the output.
PrepareResult prepare(const PrepareOptions& options);

}  // namespace satformer::data
