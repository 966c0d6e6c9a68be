#pragma once
// Corpora as streams of documents. A format is one function and one line in the list of corpus.cpp.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace satformer::data {

// Takes the documents of a file in order. The parts of a text are whole characters of valid UTF-8.
class DocumentSink {
 public:
  virtual ~DocumentSink() = default;
  virtual void text(std::string_view part) = 0;  // the next part of the document
  virtual void end_document() = 0;               // also after a document without any text
};

enum class DocumentPer { file, line, blank_line };

struct CorpusOptions {
  std::string format;                            // a name of the list; empty: by the file's extension
  DocumentPer document_per = DocumentPer::file;  // plain text
  std::string field = "text";                    // JSONL: the key that holds the document's text
};

// Told how many bytes of the file, as it lies on the disk, have been read so far.
using ReadProgress = std::function<void(std::uint64_t file_bytes)>;

struct CorpusFormat {
  std::string name;
  std::vector<std::string> extensions;  // after .gz and .zst are taken off; empty: every other file
  void (*read)(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
               const ReadProgress& progress);
};

const std::vector<CorpusFormat>& corpus_formats();

// Streams a file's documents. Memory: buffers of less than 1 MiB, for JSONL also the longest line (at most 256 MiB).
// Error names the file, the position or line, and the reason.
void read_corpus(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                 const ReadProgress& progress);

}  // namespace satformer::data
