// A corpus format of the tests: documents with a line of --separator between them, as in the files of fortune(6). What
// is here and a line in corpus_formats.inc is all that a format needs: docs/adding_a_corpus_format.md.
#include <string>

#include "satformer/data/corpus.h"
#include "satformer/data/line_splitter.h"
#include "satformer/data/text_source.h"

namespace satformer::data {
namespace {

CorpusOption separator_option() {
  return {.name = "separator", .default_value = "%", .help = "Fortune: the line between documents", .choices = {}};
}

void read_fortunes(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                   const ReadProgress& progress) {
  const std::string separator = value_of(separator_option(), options);
  std::string line;
  const auto end_line = [&](std::string_view end) {
    if (line == separator) {
      sink.end_document();
    } else {
      sink.text(line.append(end));
    }
    line.clear();
  };
  LineSplitter splitter([&](std::string_view text) { line += text; }, end_line);
  TextSource source(path);
  for (std::string_view part = source.next(); !part.empty(); part = source.next()) {
    splitter.push(part);
    progress(source.file_position());
  }
  splitter.finish();
  if (!line.empty()) end_line("");
  sink.end_document();
}

}  // namespace

CorpusFormat fortune_corpus() {
  return {.name = "fortune", .extensions = {".fortune"}, .options = {separator_option()}, .read = read_fortunes};
}

}  // namespace satformer::data
