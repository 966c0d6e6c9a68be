#pragma once
// The two passes of `prepare` over its input.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "satformer/data/corpus.h"
#include "satformer/data/prepare.h"
#include "satformer/data/sentence_sample.h"
#include "satformer/data/split.h"
#include "satformer/data/tokenizer.h"

namespace satformer::data {

struct Survey {
  std::int64_t documents = 0;        // that have text
  std::int64_t empty_documents = 0;  // skipped
  std::int64_t bytes = 0;
};

// First pass: checks the whole input, counts, fills the sample (null: none is wanted).
Survey survey_corpus(const PrepareOptions& options, SentenceSample* sample);

struct TokenizedSplits {
  SplitInfo train, val;
  std::int64_t train_shards = 0, val_shards = 0;
};

// Second pass: writes the shards of both splits into `directory`.
TokenizedSplits tokenize_corpus(const PrepareOptions& options, const Survey& survey, const DocumentSplit& split,
                                const Tokenizer& tokenizer, std::int32_t eot_id,
                                const std::filesystem::path& directory);

// A document in parts of at most 1 MiB, so that one of any length needs a bounded memory: cut after a line end, else
// before a space, else between characters. Returns the length of the first part of a text that is longer than that.
std::size_t segment_length(std::string_view text);
constexpr std::size_t kMaxSegment = std::size_t{1} << 20;

}  // namespace satformer::data
