#pragma once
// Random text and bytes, the same in every run.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace satformer::testing {

// Bytes without a pattern, for a size always the same.
inline std::string random_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24);
  return bytes;
}

// A character in UTF-8. U+D800 to U+DFFF are none.
inline std::string utf8(std::uint32_t code) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  const auto further = [&](int shift) { return byte(0x80 | (code >> shift & 63)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), further(0)};
  if (code < 0x10000) return {byte(0xe0 | code >> 12), further(6), further(0)};
  return {byte(0xf0 | code >> 18), further(12), further(6), further(0)};
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
      text += utf8(code);
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
