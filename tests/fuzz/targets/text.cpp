// Plain text as documents; the first byte chooses what a document is.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "satformer/core/utf8.h"
#include "satformer/data/corpus.h"
#include "tests/fuzz/documents.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

namespace {

class ValidDocuments : public Documents {
 public:
  void text(std::string_view part) override {
    expect(data::check_utf8(part).status == data::Utf8Status::valid, "a part of a text is valid UTF-8");
    Documents::text(part);
  }
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (end != text.npos && line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFile scratch("corpus.txt");
  if (size == 0) return 0;
  const std::array<std::string, 3> modes{"file", "line", "blank-line"};
  const std::string& mode = modes[data[0] % modes.size()];
  std::string_view text = bytes_of(data, size).substr(1);
  scratch.write(text);
  ValidDocuments documents;
  const AllocationLimit limit(128 * size + (std::size_t{1} << 20));
  if (!accepts(scratch.path().string(), [&] {
        data::read_corpus(scratch.path(), {.format = {}, .values = {{"document-per", mode}}}, documents,
                          [](std::uint64_t) {});
      })) {
    return 0;
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (mode == "file") {
    expect(documents.all() == std::vector{std::string(text)}, "a file is its bytes");
  } else if (mode == "line") {
    expect(documents.all() == lines_of(text), "lines are the file's");
  } else {
    for (const std::string& document : documents.all()) {
      const std::vector<std::string> lines = lines_of(document);
      expect(
          !document.empty() && std::none_of(lines.begin(), lines.end(), [](const auto& line) { return line.empty(); }),
          "no empty line is inside a paragraph");
    }
  }
  return 0;
}
