// Plain text. --document-per decides what a document is:
//   file        the whole file, byte for byte
//   line        a line without its \n or \r\n; an empty line is an empty document
//   blank-line  lines up to an empty line or the end, line ends between them kept, the last one's left out
#include "satformer/data/corpus.h"
#include "satformer/data/line_splitter.h"
#include "satformer/data/text_source.h"

namespace satformer::data {
namespace {

CorpusOption document_option() {
  return {.name = "document-per",
          .default_value = "file",
          .help = "Text: a document per file, line or blank-line",
          .choices = {"file", "line", "blank-line"}};
}

template <typename OnPart>
void for_each_part(TextSource& source, const ReadProgress& progress, OnPart on_part) {
  for (std::string_view part = source.next(); !part.empty(); part = source.next()) {
    on_part(part);
    progress(source.file_position());
  }
}

void read_lines(TextSource& source, DocumentSink& sink, const ReadProgress& progress) {
  bool open = false;
  LineSplitter splitter(
      [&](std::string_view text) {
        open = true;
        sink.text(text);
      },
      [&](std::string_view) {
        open = false;
        sink.end_document();
      });
  for_each_part(source, progress, [&](std::string_view part) { splitter.push(part); });
  splitter.finish();
  if (open) sink.end_document();
}

void read_paragraphs(TextSource& source, DocumentSink& sink, const ReadProgress& progress) {
  bool document_open = false;
  bool line_has_text = false;
  std::string_view held_end;  // of the line before: belongs to the document only if another line follows
  LineSplitter splitter(
      [&](std::string_view text) {
        if (document_open && !line_has_text) sink.text(held_end);
        document_open = line_has_text = true;
        sink.text(text);
      },
      [&](std::string_view end) {
        if (!line_has_text && document_open) {
          sink.end_document();
          document_open = false;
        }
        held_end = end;
        line_has_text = false;
      });
  for_each_part(source, progress, [&](std::string_view part) { splitter.push(part); });
  splitter.finish();
  if (document_open) sink.end_document();
}

void read_text(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
               const ReadProgress& progress) {
  const std::string document_per = value_of(document_option(), options);
  TextSource source(path);
  if (document_per == "line") return read_lines(source, sink, progress);
  if (document_per == "blank-line") return read_paragraphs(source, sink, progress);
  for_each_part(source, progress, [&](std::string_view part) { sink.text(part); });
  sink.end_document();
}

}  // namespace

CorpusFormat text_corpus() {
  return {.name = "text", .extensions = {}, .options = {document_option()}, .read = read_text};
}

}  // namespace satformer::data
