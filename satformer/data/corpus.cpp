#include "satformer/data/corpus.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "satformer/core/error.h"
#include "satformer/data/byte_source.h"

namespace satformer::data {

#define FORMAT(NAME) CorpusFormat NAME##_corpus();
#include "satformer/data/corpus_formats.inc"
#undef FORMAT

const std::vector<CorpusFormat>& corpus_formats() {
  static const std::vector<CorpusFormat> formats{
#define FORMAT(NAME) NAME##_corpus(),
#include "satformer/data/corpus_formats.inc"
#undef FORMAT
  };
  return formats;
}

namespace {

const CorpusFormat& format_called(const std::string& name) {
  std::vector<std::string> known;
  for (const CorpusFormat& format : corpus_formats()) {
    if (format.name == name) return format;
    known.push_back(format.name);
  }
  fail("corpus format '{}' is not known, expected one of {}", name, fmt::join(known, ", "));
}

const CorpusFormat& format_of(const std::filesystem::path& path) {
  const auto& formats = corpus_formats();
  const std::string extension = without_compression_suffix(path).extension().string();
  const auto with_extension = std::find_if(formats.begin(), formats.end(), [&](const CorpusFormat& format) {
    return std::find(format.extensions.begin(), format.extensions.end(), extension) != format.extensions.end();
  });
  if (with_extension != formats.end()) return *with_extension;
  return *std::find_if(formats.begin(), formats.end(), [](const auto& format) { return format.extensions.empty(); });
}

}  // namespace

std::string value_of(const CorpusOption& option, const CorpusOptions& options) {
  const auto given = options.values.find(option.name);
  if (given == options.values.end()) return option.default_value;
  const auto& choices = option.choices;
  require(choices.empty() || std::find(choices.begin(), choices.end(), given->second) != choices.end(),
          "{}: expected one of {}, got '{}'", option.name, fmt::join(choices, ", "), given->second);
  return given->second;
}

void read_corpus(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                 const ReadProgress& progress) {
  const CorpusFormat& format = options.format.empty() ? format_of(path) : format_called(options.format);
  format.read(path, options, sink, progress);
}

}  // namespace satformer::data
