#pragma once
// JSON lines: a JSON object a line; options.field (a key of the object itself) holds the document's text. Lines of
// white space are skipped. Error names the file and line: no JSON, no object, field missing or no string.
#include "satformer/data/corpus.h"

namespace satformer::data {

constexpr std::size_t kMaxJsonLine = std::size_t{1} << 28;  // bytes; bounds the memory

void read_jsonl_corpus(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                       const ReadProgress& progress);

}  // namespace satformer::data
