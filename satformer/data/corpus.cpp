#include "satformer/data/corpus.h"

#include <algorithm>

#include "satformer/core/error.h"
#include "satformer/data/byte_source.h"
#include "satformer/data/jsonl_corpus.h"
#include "satformer/data/text_corpus.h"

namespace satformer::data {

const std::vector<CorpusFormat>& corpus_formats() {
  static const std::vector<CorpusFormat> formats{
      {"jsonl", {".jsonl", ".ndjson", ".json-lines"}, read_jsonl_corpus},
      {"text", {}, read_text_corpus},
  };
  return formats;
}

namespace {

const CorpusFormat& format_of(const std::filesystem::path& path, const CorpusOptions& options) {
  const auto& formats = corpus_formats();
  const std::string extension = without_compression_suffix(path).extension().string();
  const auto found = std::find_if(formats.begin(), formats.end(), [&](const CorpusFormat& format) {
    if (!options.format.empty()) return format.name == options.format;
    const auto& known = format.extensions;
    return known.empty() || std::find(known.begin(), known.end(), extension) != known.end();
  });
  require(found != formats.end(), "corpus format '{}' is not known (jsonl and text are)", options.format);
  return *found;
}

}  // namespace

void read_corpus(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                 const ReadProgress& progress) {
  format_of(path, options).read(path, options, sink, progress);
}

}  // namespace satformer::data
