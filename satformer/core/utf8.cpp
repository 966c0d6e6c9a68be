#include "satformer/core/utf8.h"

#include <cstdint>
#include <cstring>

namespace satformer::data {
namespace {

// Length of the run of ASCII at the start, eight bytes at a time.
std::size_t ascii_prefix(const char* bytes, std::size_t size) {
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < size && static_cast<unsigned char>(bytes[i]) < 0x80) ++i;
  return i;
}

struct Lead {
  int length = 0;                                       // of the character; 0: not a lead byte
  unsigned char second_low = 0x80, second_high = 0xbf;  // range of the second byte
};

Lead classify(unsigned char byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};  // below: overlong
  if (byte == 0xed) return {3, 0x80, 0x9f};  // above: surrogates
  if (byte >= 0xe1 && byte <= 0xef) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};  // below: overlong
  if (byte >= 0xf1 && byte <= 0xf3) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};  // above: beyond U+10FFFF
  return {};
}

}  // namespace

Utf8Check check_utf8(std::string_view bytes) {
  std::size_t i = 0;
  while (true) {
    i += ascii_prefix(bytes.data() + i, bytes.size() - i);
    if (i == bytes.size()) return {i, Utf8Status::valid};
    const Lead lead = classify(static_cast<unsigned char>(bytes[i]));
    if (lead.length == 0) return {i, Utf8Status::invalid};
    for (int k = 1; k < lead.length; ++k) {
      if (i + k == bytes.size()) return {i, Utf8Status::incomplete};
      const auto byte = static_cast<unsigned char>(bytes[i + k]);
      const unsigned char low = k == 1 ? lead.second_low : 0x80;
      const unsigned char high = k == 1 ? lead.second_high : 0xbf;
      if (byte < low || byte > high) return {i, Utf8Status::invalid};
    }
    i += lead.length;
  }
}

std::size_t utf8_boundary(std::string_view text, std::size_t position) {
  if (position >= text.size()) return text.size();
  while (position > 0 && (static_cast<unsigned char>(text[position]) & 0xc0) == 0x80) --position;
  return position;
}

}  // namespace satformer::data
