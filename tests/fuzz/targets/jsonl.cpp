// JSON lines as documents, compared with a parser that builds the whole value.
#include <nlohmann/json.hpp>
#include <vector>

#include "satformer/data/corpus.h"
#include "tests/fuzz/documents.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFile scratch("corpus.jsonl");
  std::string_view text = bytes_of(data, size);
  scratch.write(text);
  Documents documents;
  {
    const AllocationLimit limit(64 * size + (std::size_t{1} << 20));
    if (!accepts(scratch.path().string(),
                 [&] { data::read_corpus(scratch.path(), {}, documents, [](std::uint64_t) {}); })) {
      return 0;
    }
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t next = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const auto value = nlohmann::json::parse(line);
    expect(next < documents.all().size() && value.at("text") == documents.all()[next], "a document is its line's text");
    ++next;
  }
  expect(next == documents.all().size(), "every document has a line");
  return 0;
}
