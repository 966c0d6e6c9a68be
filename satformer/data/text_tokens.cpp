#include "satformer/data/text_tokens.h"

#include <string>
#include <string_view>
#include <vector>

#include "satformer/data/corpus.h"
#include "satformer/data/encoder.h"
#include "satformer/data/prepare_passes.h"
#include "satformer/data/shard_writer.h"

namespace satformer::data {
namespace {

constexpr std::int64_t kTextShardTokens = 100'000'000;

class EncodingSink : public DocumentSink {
 public:
  EncodingSink(const Tokenizer& tokenizer, std::int32_t end_of_text_id, SplitWriter& writer)
      : encoder_(tokenizer), end_of_text_id_(end_of_text_id), writer_(writer) {}

  void text(std::string_view part) override {
    open_ += part;
    while (open_.size() > kMaxSegment) {
      const std::size_t length = segment_length(open_);
      encode(std::string_view(open_).substr(0, length));
      open_.erase(0, length);
      continues_ = true;
    }
  }

  void end_document() override {
    if (open_.empty() && !continues_) return;
    encode(open_);
    writer_.write(std::vector{end_of_text_id_});
    open_.clear();
    continues_ = false;
  }

 private:
  void encode(std::string_view text) {
    ids_.clear();
    encoder_.encode(text, continues_, ids_);
    writer_.write(ids_);
  }

  Encoder encoder_;
  std::int32_t end_of_text_id_;
  SplitWriter& writer_;
  std::string open_;        // what of the document has not been encoded
  bool continues_ = false;  // some of it has
  std::vector<std::int32_t> ids_;
};

}  // namespace

void write_text_tokens(const std::filesystem::path& text, const Tokenizer& tokenizer, std::int32_t end_of_text_id,
                       const std::filesystem::path& directory, const std::string& prefix) {
  SplitWriter writer(directory, prefix, tokenizer.vocab_size(), kTextShardTokens);
  EncodingSink sink(tokenizer, end_of_text_id, writer);
  read_corpus(text, {}, sink, [](std::uint64_t) {});
  writer.finish();
}

}  // namespace satformer::data
