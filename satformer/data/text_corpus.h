#pragma once
// Plain text. document_per decides what a document is:
//   file        the whole file, byte for byte
//   line        a line without its \n or \r\n; an empty line is an empty document
//   blank_line  lines up to an empty line or the end, line ends between them kept, the last one's left out
#include "satformer/data/corpus.h"

namespace satformer::data {

void read_text_corpus(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                      const ReadProgress& progress);

}  // namespace satformer::data
