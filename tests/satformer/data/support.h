#pragma once
// What the tests of data share.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "satformer/data/corpus.h"
#include "tests/satformer/core/support.h"

namespace satformer::testing {

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

// Text with words, numbers, runs of white space, and characters of all lengths. Never U+0000.
inline std::string random_text(std::mt19937_64& random, int pieces) {
  static const std::vector<std::string> kPieces{"the",
                                                "king",
                                                "Value",
                                                " ",
                                                " ",
                                                " ",
                                                "  ",
                                                "\n",
                                                "\r\n",
                                                "\t",
                                                "\n\n",
                                                "1",
                                                "23",
                                                "\xc3\xa9",
                                                "\xe2\x96\x81",
                                                "\xe2\x96\x85",
                                                "\xf0\x9f\x8e\x89",
                                                "<s>",
                                                "</s>",
                                                "<unk>",
                                                "<0x0A>",
                                                "\xef\xbb\xbf",
                                                ".",
                                                ",",
                                                "\x01",
                                                "\x7f"};
  std::string text;
  for (int i = 0; i < pieces; ++i) {
    if (random() % 8 == 0) {
      const std::uint32_t code = 1 + random() % 0x10ffff;
      if (code >= 0xd800 && code < 0xe000) continue;
      if (code < 0x80) {
        text += static_cast<char>(code);
      } else if (code < 0x800) {
        text += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
      } else if (code < 0x10000) {
        text += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
                 static_cast<char>(0x80 | (code & 63))};
      } else {
        text += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
                 static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
      }
    } else {
      text += kPieces[random() % kPieces.size()];
    }
  }
  return text;
}

// `count` lines of made-up words of a small language, enough to train tokenizers on.
inline std::string made_up_lines(int count, std::uint64_t seed = 1) {
  static const std::vector<std::string> kSyllables{"ka", "ro", "mi", "ten", "sul", "va", "or", "lin", "de", "pa"};
  std::mt19937_64 random(seed);
  std::string text;
  for (int line = 0; line < count; ++line) {
    const int words = 3 + static_cast<int>(random() % 9);
    for (int word = 0; word < words; ++word) {
      if (word > 0) text += ' ';
      const int syllables = 1 + static_cast<int>(random() % 3);
      for (int i = 0; i < syllables; ++i) text += kSyllables[random() % kSyllables.size()];
      if (random() % 10 == 0) text += std::to_string(random() % 1000);
    }
    text += ".\n";
  }
  return text;
}

}  // namespace satformer::testing
