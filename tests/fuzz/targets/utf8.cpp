// The UTF-8 check against the definition of the code.
#include "satformer/core/utf8.h"

#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

namespace {

// Bytes of the character at the start of `bytes`; 0 where none is.
std::size_t character_bytes(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const std::size_t count = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
  if (count == 0 || count > bytes.size()) return 0;
  std::uint32_t code = count == 1 ? lead : lead & (0x7fU >> count);
  for (std::size_t i = 1; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte >> 6 != 2) return 0;
    code = code << 6 | (byte & 0x3fU);
  }
  const std::uint32_t least = count == 1 ? 0 : count == 2 ? 0x80 : count == 3 ? 0x800 : 0x10000;
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < least || surrogate || code > 0x10ffff ? 0 : count;
}

// Whether some bytes after these make a character of them.
bool can_be_completed(const std::string& bytes) {
  if (bytes.empty() || bytes.size() > 3) return false;
  for (const char next : {'\x80', '\x90', '\xa0', '\xbf'}) {
    const std::string longer = bytes + next;
    if (character_bytes(longer) == longer.size() || can_be_completed(longer)) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(bytes_of(data, size));
  std::size_t valid = 0;
  while (const std::size_t count = character_bytes(std::string_view(text).substr(valid))) valid += count;
  const data::Utf8Check check = data::check_utf8(text);
  expect(check.valid_bytes == valid, "the valid bytes are the longest prefix of characters");
  const std::string rest = text.substr(valid);
  const auto status = rest.empty()             ? data::Utf8Status::valid
                      : can_be_completed(rest) ? data::Utf8Status::incomplete
                                               : data::Utf8Status::invalid;
  expect(check.status == status, "a cut character is told from a wrong one");
  const std::string_view whole = std::string_view(text).substr(0, valid);
  const std::size_t boundary = data::utf8_boundary(whole, valid / 2);
  expect(boundary <= valid / 2 && data::check_utf8(whole.substr(0, boundary)).status == data::Utf8Status::valid,
         "a boundary lies between characters");
  return 0;
}
