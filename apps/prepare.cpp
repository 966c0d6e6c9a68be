// satformer prepare: text files -> tokenised shards.
#include "satformer/data/prepare.h"

#include <fmt/ranges.h>

#include <limits>
#include <memory>

#include "apps/commands.h"
#include "apps/options.h"
#include "satformer/core/progress.h"

namespace satformer::apps {
namespace {

using data::PrepareOptions;
using data::PrepareResult;
using nlohmann::json;

json split_json(const data::SplitInfo& split, std::int64_t shards) {
  return {{"documents", split.documents}, {"tokens", split.tokens}, {"bytes", split.bytes}, {"shards", shards}};
}

json result_json(const PrepareOptions& options, const PrepareResult& result) {
  return {{"output", options.output.string()},
          {"documents", result.documents()},
          {"empty_documents", result.empty_documents},
          {"bytes", result.bytes()},
          {"tokens", result.tokens()},
          {"bytes_per_token", static_cast<double>(result.bytes()) / static_cast<double>(result.tokens())},
          {"vocab_size", result.info.vocab_size},
          {"end_of_text_id", result.info.end_of_text_id},
          {"tokenizer_crc32", result.info.tokenizer_crc32},
          {"trained_tokenizer", result.trained_tokenizer},
          {"seconds", result.seconds},
          {"tokens_per_second", result.tokens_per_second()},
          {"train", split_json(result.info.train, result.train_shards)},
          {"val", split_json(result.info.val, result.val_shards)}};
}

void print_split(const char* name, const data::SplitInfo& split, std::int64_t shards) {
  fmt::print("{:<6} {:>12} documents {:>14} bytes {:>14} tokens {:>5} shards\n", name, split.documents, split.bytes,
             split.tokens, shards);
}

void print_result(const PrepareOptions& options, const PrepareResult& result) {
  print_split("train", result.info.train, result.train_shards);
  print_split("val", result.info.val, result.val_shards);
  if (result.empty_documents > 0) fmt::print("{} empty documents skipped\n", result.empty_documents);
  fmt::print("{}: vocabulary {}, {:.3f} bytes a token, {:.1f} s, {} tokens/s\n", options.output.string(),
             result.info.vocab_size, static_cast<double>(result.bytes()) / static_cast<double>(result.tokens()),
             result.seconds, format_count(result.tokens_per_second()));
}

// The flag of a corpus format's own option.
void add_format_option(CLI::App& command, const data::CorpusOption& option, data::CorpusOptions& options) {
  auto* flag = command.add_option_function<std::string>(
      "--" + option.name, [name = option.name, &options](const std::string& value) { options.values[name] = value; },
      option.help);
  if (!option.choices.empty()) flag->check(CLI::IsMember(option.choices));
  flag->default_str(option.default_value);
}

void add_input_options(CLI::App& command, PrepareOptions& options) {
  command.add_option("--input", options.inputs, "Text or JSONL files, also .gz and .zst")->required();
  std::vector<std::string> formats;
  for (const data::CorpusFormat& format : data::corpus_formats()) formats.push_back(format.name);
  command
      .add_option("--format", options.corpus.format,
                  fmt::format("{}, instead of what the extension says", fmt::join(formats, " or ")))
      ->check(CLI::IsMember(formats));
  for (const data::CorpusFormat& format : data::corpus_formats()) {
    for (const data::CorpusOption& option : format.options) add_format_option(command, option, options.corpus);
  }
}

void add_tokenizer_options(CLI::App& command, PrepareOptions& options) {
  auto* model = command.add_option("--tokenizer", options.tokenizer, "An existing SentencePiece tokenizer.model");
  command.add_option("--vocab-size", options.training.vocab_size, "Pieces of the tokenizer to train")
      ->capture_default_str()
      ->check(CLI::Range(1, 16'777'216))
      ->excludes(model);
  command.add_option("--tokenizer-type", options.training.type, "bpe or unigram")
      ->capture_default_str()
      ->check(CLI::IsMember({"bpe", "unigram"}))
      ->excludes(model);
  command
      .add_option("--tokenizer-sample-bytes", options.tokenizer_sample_bytes,
                  "Memory for the random sample of lines that the tokenizer is trained on")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1} << 16, std::int64_t{1} << 40))
      ->excludes(model);
  command.add_option("--eot-id", options.eot_id, "Id after each document (default: the tokenizer's end id)");
}

void add_output_options(CLI::App& command, PrepareOptions& options) {
  command.add_option("--output", options.output, "Folder to make")->required();
  command.add_flag("--overwrite", options.overwrite, "Replace the folder of an earlier prepare");
  command.add_option("--val-fraction", options.val_fraction, "Share of the documents for validation, in (0, 1)")
      ->capture_default_str()
      ->check([](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value > 0 && value < 1;
        return fits ? std::string() : "must be in (0, 1), got " + text;
      });
  command.add_option("--seed", options.seed, "Of the split and the tokenizer's sample")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  command.add_option("--shard-tokens", options.shard_tokens, "Tokens a shard at most")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--seq-length", options.seq_length, "Fail unless both splits hold a window of this length")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command.add_option("--threads", options.threads, "Tokenizer threads (default: as many as the machine has)")
      ->check(CLI::Range(1, 4096));
}

}  // namespace

void add_prepare(CLI::App& app) {
  struct State {
    PrepareOptions options;
    std::string json_path;
  };
  auto state = std::make_shared<State>();
  CLI::App* command = app.add_subcommand("prepare", "Turn text into tokenised shards");
  add_input_options(*command, state->options);
  add_tokenizer_options(*command, state->options);
  add_output_options(*command, state->options);
  add_json_option(*command, state->json_path);
  command->callback([state] {
    const StopSignal stop;
    state->options.should_stop = [&stop] { return stop.requested(); };
    const PrepareResult result = data::prepare(state->options);
    print_result(state->options, result);
    write_json_result(state->json_path, result_json(state->options, result));
  });
}

}  // namespace satformer::apps
