#include "satformer/data/prepare.h"

#include <algorithm>
#include <chrono>

#include "satformer/core/clock.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/data/output_folder.h"
#include "satformer/data/prepare_passes.h"
#include "satformer/data/window.h"
#include "satformer/io/files.h"

namespace satformer::data {
namespace {

void check_options(const PrepareOptions& options) {
  require(!options.inputs.empty(), "prepare: no input files");
  require(options.val_fraction > 0 && options.val_fraction < 1, "val-fraction must be in (0, 1), got {}",
          options.val_fraction);
  require(options.shard_tokens >= 1, "shard-tokens must be at least 1, got {}", options.shard_tokens);
  require(options.seq_length >= 0, "seq-length must not be negative, got {}", options.seq_length);
  require(options.threads >= 0, "threads must not be negative, got {}", options.threads);
  require(options.tokenizer_sample_bytes >= 1 << 16, "tokenizer-sample-bytes must be at least 65536, got {}",
          options.tokenizer_sample_bytes);
  check_output(options.output, options.overwrite);
}

void check_documents(const Survey& survey) {
  require(survey.documents > 0, "the input holds no text: {} documents, all empty", survey.empty_documents);
  require(survey.documents > 1,
          "the input is one document, but training and validation need one each: cut it with --document-per line or "
          "blank-line, or give more files");
}

Tokenizer make_tokenizer(const PrepareOptions& options, const DocumentSplit& split, SentenceSample& sample) {
  if (options.tokenizer) return Tokenizer(*options.tokenizer);
  // Validation text stays unseen by the tokenizer too.
  std::vector<std::string> sentences = sample.take([&](std::uint64_t document) { return !split.is_val(document); });
  std::size_t bytes = 0;
  for (const std::string& sentence : sentences) bytes += sentence.size();
  note(fmt::format("training a {} tokenizer of {} pieces on {} sentences ({} bytes)", options.training.type,
                   options.training.vocab_size, format_count(static_cast<double>(sentences.size())),
                   format_count(static_cast<double>(bytes))));
  return Tokenizer::from_serialized(train_tokenizer(options.training, std::move(sentences)), "the trained tokenizer");
}

std::int32_t end_of_text_id(const PrepareOptions& options, const Tokenizer& tokenizer) {
  const std::int64_t id = options.eot_id.value_or(tokenizer.eos_id());
  require(options.eot_id || id >= 0, "the tokenizer has no end id to put after each document; name one with --eot-id");
  require(id >= 0 && id < tokenizer.vocab_size(), "eot-id {} is outside the tokenizer's vocabulary of {}", id,
          tokenizer.vocab_size());
  return static_cast<std::int32_t>(id);
}

void check_split(const char* name, const SplitInfo& split, std::int64_t seq_length) {
  require_window(fmt::format("{} split", name), split.tokens, std::max<std::int64_t>(seq_length, 1),
                 "give more text, another --val-fraction or a smaller --seq-length");
}

}  // namespace

PrepareResult prepare(const PrepareOptions& options) {
  const auto start = Clock::now();
  check_options(options);
  SentenceSample sample(static_cast<std::uint64_t>(options.tokenizer_sample_bytes), options.seed);
  const Survey survey = survey_corpus(options, options.tokenizer ? nullptr : &sample);
  check_documents(survey);
  const DocumentSplit split(survey.documents, options.val_fraction, options.seed);
  const Tokenizer tokenizer = make_tokenizer(options, split, sample);
  const std::int32_t eot_id = end_of_text_id(options, tokenizer);

  OutputFolder output(options.output);
  const auto tokenize_start = Clock::now();
  const TokenizedSplits splits = tokenize_corpus(options, survey, split, tokenizer, eot_id, output.path());
  PrepareResult result;
  result.tokenize_seconds = seconds_since(tokenize_start);
  check_split("train", splits.train, options.seq_length);
  check_split("val", splits.val, options.seq_length);

  const std::string& model = tokenizer.serialized();
  write_file_atomically(output.path() / "tokenizer.model", model);
  result.info.vocab_size = tokenizer.vocab_size();
  result.info.end_of_text_id = eot_id;
  result.info.tokenizer_crc32 = fmt::format("{:08x}", crc32_of(std::as_bytes(std::span(model))));
  result.info.train = splits.train;
  result.info.val = splits.val;
  write_dataset_info(output.path(), result.info);
  output.commit();

  result.empty_documents = survey.empty_documents;
  result.train_shards = splits.train_shards;
  result.val_shards = splits.val_shards;
  result.trained_tokenizer = !options.tokenizer;
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace satformer::data
