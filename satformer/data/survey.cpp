#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/data/corpus_walk.h"
#include "satformer/data/prepare_passes.h"

namespace satformer::data {
namespace {

class SurveySink : public DocumentSink {
 public:
  explicit SurveySink(SentenceSample* sample) : sample_(sample) {}

  void text(std::string_view part) override {
    has_text_ = has_text_ || !part.empty();
    survey_.bytes += static_cast<std::int64_t>(part.size());
    if (sample_ != nullptr) sample_->text(part, index());
  }

  void end_document() override {
    if (!has_text_) {
      ++survey_.empty_documents;
      return;
    }
    if (sample_ != nullptr) sample_->end_document(index());
    ++survey_.documents;
    has_text_ = false;
  }

  const Survey& survey() const { return survey_; }

 private:
  std::uint64_t index() const { return static_cast<std::uint64_t>(survey_.documents); }

  SentenceSample* sample_;
  Survey survey_;
  bool has_text_ = false;
};

}  // namespace

Survey survey_corpus(const PrepareOptions& options, SentenceSample* sample) {
  SurveySink sink(sample);
  Progress progress("prepare: reading", "bytes", file_bytes(options.inputs));
  walk_corpus(options, sink, [&](std::int64_t done) {
    progress.update(done, fmt::format("{} documents", format_count(static_cast<double>(sink.survey().documents))));
  });
  progress.finish();
  return sink.survey();
}

}  // namespace satformer::data
