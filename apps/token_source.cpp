#include "apps/token_source.h"

#include <algorithm>

#include "apps/checkpoint_data.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/data/text_tokens.h"

namespace satformer::apps {
namespace {

namespace fs = std::filesystem;

// The first of these that is there: --tokenizer, the checkpoint's, the data folder's.
std::optional<data::Tokenizer> find_tokenizer(const TokenSourceFlags& flags, const fs::path& checkpoint,
                                              const fs::path& data_dir) {
  if (!flags.tokenizer.empty()) return data::Tokenizer(flags.tokenizer);
  for (const fs::path& folder : {checkpoint, data_dir}) {
    if (const auto tokenizer = data::find_tokenizer(folder)) return data::Tokenizer(*tokenizer);
  }
  return std::nullopt;
}

void open_text(const TokenSourceFlags& flags, const data::Tokenizer& tokenizer, const models::ModelConfig& model,
               TokenSource& source) {
  require(tokenizer.vocab_size() <= model.vocab_size, "the tokenizer has {} pieces, the model only {}",
          tokenizer.vocab_size(), model.vocab_size);
  StagedDirectory::remove_stale(fs::temp_directory_path());  // what a killed process left
  source.text_shards = std::make_unique<StagedDirectory>(fs::temp_directory_path() / "satformer_gates");
  fs::permissions(source.text_shards->path(), fs::perms::owner_all);  // the text may be private
  const std::int64_t end = source.batch.end_of_text_id.value_or(model.eos_token_id);
  data::write_text_tokens(flags.text, tokenizer, static_cast<std::int32_t>(end), source.text_shards->path(), "text");
  require(!fs::is_empty(source.text_shards->path()), "--text {}: holds no text", flags.text);
  source.dataset = data::TokenDataset::open(source.text_shards->path(), "text", {.vocab_size = model.vocab_size});
  source.name = flags.text;
  const std::int64_t inputs = source.dataset->num_tokens() - 1;
  require(inputs >= 1, "--text {}: holds no text", flags.text);
  source.batch.seq_length = std::min(source.batch.seq_length, inputs);
}

}  // namespace

TokenSource open_token_source(const TokenSourceFlags& flags, const fs::path& checkpoint,
                              const models::ModelConfig& model) {
  train::DataConfig data = data_config(checkpoint, model);
  if (!flags.data.empty()) data.data_dir = flags.data;
  if (flags.seq_length > 0) data.seq_length = flags.seq_length;
  TokenSource source;
  source.batch = train::batch_options(data, model);
  const auto tokenizer = find_tokenizer(flags, checkpoint, data.data_dir);
  if (tokenizer) {
    source.classifier.emplace(*tokenizer, flags.categories.empty() ? analysis::TokenCategories::built_in()
                                                                   : analysis::TokenCategories::load(flags.categories));
  } else {
    note("no tokenizer.model beside the checkpoint or the data: no token classes, ids instead of pieces");
  }
  if (!flags.text.empty()) {
    require(tokenizer.has_value(), "--text needs a tokenizer: {} has none; give --tokenizer", checkpoint.string());
    open_text(flags, *tokenizer, model, source);
    return source;
  }
  const std::string& prefix = flags.split == "val" ? data.val_prefix : data.train_prefix;
  require(!data.data_dir.empty(), "{} does not say what data it was trained with: give --data or --text",
          checkpoint.string());
  source.dataset = data::TokenDataset::open(data.data_dir, prefix, {.vocab_size = model.vocab_size});
  source.name = source.dataset->name();
  return source;
}

void add_token_source_options(CLI::App& command, TokenSourceFlags& flags) {
  command.add_option("--data", flags.data, "Folder of the token shards [the training data]")->type_name("DIR");
  command.add_option("--split", flags.split, "Which split")
      ->capture_default_str()
      ->check(CLI::IsMember({"val", "train"}));
  command.add_option("--seq-length", flags.seq_length, "Tokens of one window [that of the training]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  command.add_option("--max-tokens", flags.max_tokens, "Look at about so many tokens from the start [all]")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command.add_option("--tokenizer", flags.tokenizer, "A SentencePiece tokenizer.model [the checkpoint's, the data's]")
      ->type_name("FILE");
  command.add_option("--categories", flags.categories, "Token classes: docs/gates.md [English, built in]")
      ->type_name("FILE");
}

analysis::StreamOptions stream_options(const TokenSource& source, std::int64_t max_tokens) {
  analysis::StreamOptions options;
  options.batch = source.batch;
  const std::int64_t length = source.batch.seq_length;
  if (max_tokens > 0) options.max_windows = (max_tokens + length - 1) / length;
  return options;
}

void check_report_output(const fs::path& output, bool overwrite, const std::string& command, const std::string& file) {
  if (!fs::exists(fs::symlink_status(output))) return;
  require(fs::is_directory(output), "--output {}: exists and is no folder", output.string());
  if (fs::is_empty(output)) return;
  require(overwrite, "--output {}: exists and is not empty; give another folder or --overwrite", output.string());
  require(fs::exists(output / file), "--output {}: not overwritten, because `satformer {}` did not write it",
          output.string(), command);
}

}  // namespace satformer::apps
