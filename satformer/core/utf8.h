#pragma once
// Strict UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
#include <cstddef>
#include <string_view>

namespace satformer::data {

enum class Utf8Status {
  valid,       // all bytes form characters
  incomplete,  // the bytes end within a character that is right so far
  invalid,     // the byte at `valid_bytes` starts no character
};

struct Utf8Check {
  std::size_t valid_bytes = 0;  // length of the longest prefix of whole characters
  Utf8Status status = Utf8Status::valid;
};

Utf8Check check_utf8(std::string_view bytes);

// The largest boundary between characters that is at most `position`, in valid UTF-8.
std::size_t utf8_boundary(std::string_view text, std::size_t position);

}  // namespace satformer::data
