#include "satformer/analysis/tokens/source.h"

#include <algorithm>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/data/text_tokens.h"

namespace satformer::analysis {
namespace {

namespace fs = std::filesystem;

// The first of these that is there: the options', the checkpoint's, the data folder's.
std::optional<data::Tokenizer> find_tokenizer(const TokenSourceOptions& options, const fs::path& checkpoint,
                                              const fs::path& data_dir) {
  if (!options.tokenizer.empty()) return data::Tokenizer(options.tokenizer);
  for (const fs::path& folder : {checkpoint, data_dir}) {
    if (const auto tokenizer = data::find_tokenizer(folder)) return data::Tokenizer(*tokenizer);
  }
  return std::nullopt;
}

void open_text(const std::string& text, const data::Tokenizer& tokenizer, const models::ModelConfig& model,
               TokenSource& source) {
  require(tokenizer.vocab_size() <= model.vocab_size, "the tokenizer has {} pieces, the model only {}",
          tokenizer.vocab_size(), model.vocab_size);
  StagedDirectory::remove_stale(fs::temp_directory_path());  // what a killed process left
  source.text_shards = std::make_unique<StagedDirectory>(fs::temp_directory_path() / "satformer_gates");
  fs::permissions(source.text_shards->path(), fs::perms::owner_all);  // the text may be private
  const std::int64_t end = source.batch.end_of_text_id.value_or(model.eos_token_id);
  data::write_text_tokens(text, tokenizer, static_cast<std::int32_t>(end), source.text_shards->path(), "text");
  require(!fs::is_empty(source.text_shards->path()), "--text {}: holds no text", text);
  source.dataset = data::TokenDataset::open(source.text_shards->path(), "text", {.vocab_size = model.vocab_size});
  source.name = text;
  const std::int64_t inputs = source.dataset->num_tokens() - 1;
  require(inputs >= 1, "--text {}: holds no text", text);
  source.batch.seq_length = std::min(source.batch.seq_length, inputs);
}

}  // namespace

TokenStream TokenSource::stream(StreamOptions options, std::int64_t max_tokens) const {
  options.batch = batch;
  if (max_tokens > 0) options.max_windows = (max_tokens + batch.seq_length - 1) / batch.seq_length;
  return {*dataset, classes(), std::move(options)};
}

TokenSource open_token_source(const TokenSourceOptions& options, const fs::path& checkpoint,
                              const models::ModelConfig& model) {
  const train::DataConfig data = eval::data_config(checkpoint, model, options.split);
  TokenSource source;
  source.batch = train::batch_options(data, model);
  const auto tokenizer = find_tokenizer(options, checkpoint, data.data_dir);
  if (tokenizer) {
    source.classifier.emplace(*tokenizer, options.categories.empty() ? TokenCategories::built_in()
                                                                     : TokenCategories::load(options.categories));
  } else {
    note("no tokenizer.model beside the checkpoint or the data: no token classes, ids instead of pieces");
  }
  if (!options.text.empty()) {
    require(tokenizer.has_value(), "--text needs a tokenizer: {} has none; give --tokenizer", checkpoint.string());
    open_text(options.text, *tokenizer, model, source);
    return source;
  }
  require(!data.data_dir.empty(), "{} does not say what data it was trained with: give --data or --text",
          checkpoint.string());
  source.dataset = data::TokenDataset::open(data.data_dir, eval::prefix_of(data, options.split.name),
                                            {.vocab_size = model.vocab_size});
  source.name = source.dataset->name();
  return source;
}

}  // namespace satformer::analysis
