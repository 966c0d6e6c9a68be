#include <algorithm>
#include <thread>

#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/core/utf8.h"
#include "satformer/data/corpus_walk.h"
#include "satformer/data/encoder.h"
#include "satformer/data/ordered_pool.h"
#include "satformer/data/prepare_passes.h"
#include "satformer/data/shard_writer.h"

namespace satformer::data {

std::size_t segment_length(std::string_view text) {
  if (text.size() <= kMaxSegment) return text.size();
  const std::string_view head = text.substr(0, kMaxSegment);
  if (const std::size_t newline = head.rfind('\n'); newline != std::string_view::npos) return newline + 1;
  // Where a word begins: a space after something else. Searched in the last part only, against quadratic work.
  for (std::size_t at = kMaxSegment - 1; at > kMaxSegment / 2; --at) {
    if (head[at] == ' ' && head[at - 1] != ' ') return at;
  }
  return utf8_boundary(text, kMaxSegment);
}

namespace {

constexpr std::size_t kBatchBytes = std::size_t{1} << 18;  // short documents go to the tokenizers together

// Texts of one or more documents, in order.
struct TextBatch {
  struct Part {
    std::size_t length = 0;
    bool is_val = false;
    bool continues = false;      // not the first part of its document
    bool ends_document = false;  // the end-of-text id follows
  };
  std::string text;
  std::vector<Part> parts;
};

struct TokenBatch {
  std::vector<std::int32_t> train, val;
};

// Cuts the stream of documents into batches for the tokenizers.
class BatchSink : public DocumentSink {
 public:
  BatchSink(const DocumentSplit& split, std::int64_t documents, std::function<void(TextBatch)> push)
      : split_(split), num_documents_(documents), push_(std::move(push)) {}

  void text(std::string_view part) override {
    while (!part.empty()) {
      const auto taken = part.substr(0, utf8_boundary(part, kMaxSegment));
      if (open_.empty() && !continues_) begin_document();
      info().bytes += static_cast<std::int64_t>(taken.size());
      open_ += taken;
      part.remove_prefix(taken.size());
      while (open_.size() > kMaxSegment) {
        const std::size_t length = segment_length(open_);
        emit(std::string_view(open_).substr(0, length), false);
        open_.erase(0, length);
        continues_ = true;
      }
    }
  }

  void end_document() override {
    if (open_.empty() && !continues_) return;  // an empty document
    emit(open_, true);
    open_.clear();
    continues_ = false;
    ++info().documents;
    ++index_;
  }

  void finish() {
    if (!batch_.parts.empty()) push_(std::move(batch_));
    batch_ = {};
  }

  const SplitInfo& train() const { return train_; }
  const SplitInfo& val() const { return val_; }

 private:
  void begin_document() {
    require(index_ < num_documents_, "the input changed while it was read: more than {} documents", num_documents_);
    is_val_ = split_.is_val(static_cast<std::uint64_t>(index_));
  }

  void emit(std::string_view text, bool ends_document) {
    batch_.text += text;
    batch_.parts.push_back({text.size(), is_val_, continues_, ends_document});
    if (batch_.text.size() >= kBatchBytes) finish();
  }

  SplitInfo& info() { return is_val_ ? val_ : train_; }

  const DocumentSplit& split_;
  std::int64_t num_documents_, index_ = 0;
  std::function<void(TextBatch)> push_;
  SplitInfo train_, val_;
  TextBatch batch_;
  std::string open_;        // what of the current document has not been emitted
  bool continues_ = false;  // some of it has
  bool is_val_ = false;
};

// Each thread's copy owns an encoder with its memory of words.
class BatchTokenizer {
 public:
  BatchTokenizer(const Tokenizer& tokenizer, std::int32_t eot_id) : encoder_(tokenizer), eot_id_(eot_id) {}

  TokenBatch operator()(const TextBatch& batch) {
    TokenBatch tokens;
    std::string_view rest = batch.text;
    for (const TextBatch::Part& part : batch.parts) {
      std::vector<std::int32_t>& ids = part.is_val ? tokens.val : tokens.train;
      encoder_.encode(rest.substr(0, part.length), part.continues, ids);
      if (part.ends_document) ids.push_back(eot_id_);
      rest.remove_prefix(part.length);
    }
    return tokens;
  }

 private:
  Encoder encoder_;
  std::int32_t eot_id_;
};

void check_unchanged(const Survey& survey, const SplitInfo& train, const SplitInfo& val) {
  require(train.documents + val.documents == survey.documents && train.bytes + val.bytes == survey.bytes,
          "the input changed while it was read: {} documents of {} bytes, then {} of {}", survey.documents,
          survey.bytes, train.documents + val.documents, train.bytes + val.bytes);
}

int num_threads(const PrepareOptions& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

TokenizedSplits tokenize_corpus(const PrepareOptions& options, const Survey& survey, const DocumentSplit& split,
                                const Tokenizer& tokenizer, std::int32_t eot_id,
                                const std::filesystem::path& directory) {
  SplitWriter train(directory, "train", tokenizer.vocab_size(), options.shard_tokens);
  SplitWriter val(directory, "val", tokenizer.vocab_size(), options.shard_tokens);
  const int threads = num_threads(options);
  OrderedPool<TextBatch, TokenBatch> pool(threads, 2 * static_cast<std::size_t>(threads) + 2,
                                          BatchTokenizer(tokenizer, eot_id), [&](const TokenBatch& tokens) {
                                            train.write(tokens.train);
                                            val.write(tokens.val);
                                          });
  BatchSink sink(split, survey.documents, [&](TextBatch batch) { pool.push(std::move(batch)); });
  Progress progress("prepare: tokenizing", "bytes", file_bytes(options.inputs));
  walk_corpus(options, sink, [&](std::int64_t done) {
    const auto tokens = static_cast<double>(train.num_tokens() + val.num_tokens());
    progress.update(done, fmt::format("{} tokens/s", format_count(tokens / std::max(progress.seconds(), 1e-3))));
  });
  sink.finish();
  pool.finish();
  progress.finish();
  train.finish();
  val.finish();
  check_unchanged(survey, sink.train(), sink.val());
  TokenizedSplits result{sink.train(), sink.val(), train.num_shards(), val.num_shards()};
  result.train.tokens = train.num_tokens();
  result.val.tokens = val.num_tokens();
  return result;
}

}  // namespace satformer::data
