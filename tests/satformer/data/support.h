#pragma once
// What the tests of data share.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "satformer/data/corpus.h"
#include "tests/support/errors.h"
#include "tests/support/folders.h"
#include "tests/support/text.h"

namespace satformer::testing {

// Keeps the documents of a corpus.
class DocumentList : public data::DocumentSink {
 public:
  void text(std::string_view part) override { open_ += part; }
  void end_document() override {
    documents.push_back(open_);
    open_.clear();
  }
  std::vector<std::string> documents;

 private:
  std::string open_;
};

inline std::vector<std::string> documents_of(const std::filesystem::path& path,
                                             const data::CorpusOptions& options = {}) {
  DocumentList list;
  data::read_corpus(path, options, list, [](std::uint64_t) {});
  return list.documents;
}

}  // namespace satformer::testing
