#pragma once
// Corpora as streams of documents. A format is one file and one line in the list corpus_formats.inc
// (docs/adding_a_corpus_format.md).
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
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

// How a corpus is to be read, whatever its format.
struct CorpusOptions {
  std::string format;                         // a name of the list; empty: by the file's extension
  std::map<std::string, std::string> values;  // of the formats' own options, by name; the others have their defaults
};

// An option that one format has; `satformer prepare` makes the flag --NAME of it.
struct CorpusOption {
  std::string name, default_value;
  std::string help;                  // a line
  std::vector<std::string> choices;  // empty: any text
};

// Told how many bytes of the file, as it lies on the disk, have been read so far.
using ReadProgress = std::function<void(std::uint64_t file_bytes)>;

struct CorpusFormat {
  std::string name;
  std::vector<std::string> extensions;  // after .gz and .zst are taken off; empty: every file that no other format has
  std::vector<CorpusOption> options;
  // Gives the documents of a file to the sink. Error names the file and the place.
  void (*read)(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
               const ReadProgress& progress);
};

// All there are, in the order of the list.
const std::vector<CorpusFormat>& corpus_formats();

// What `options` give for an option of a format, else its default. Error when that is none of the choices.
std::string value_of(const CorpusOption& option, const CorpusOptions& options);

// Streams a file's documents. Memory: buffers of less than 1 MiB, for JSONL also the longest line (at most 256 MiB).
// Error names the file, the position or line, and the reason.
void read_corpus(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                 const ReadProgress& progress);

}  // namespace satformer::data
