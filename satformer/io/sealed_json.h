#pragma once
// A JSON object's text that carries the checksum of its own other lines, so that one changed byte anywhere is found:
//   {
//    "crc32": "0123abcd",     CRC-32 of the text without this line, eight hex digits
//    ...
// It works on the text, not on values: what a parser forgives (spaces, another order, an escape) counts as well.
#include <string>
#include <string_view>

namespace satformer {

// Adds the line. `text` is an object with at least one member, indented: nlohmann's dump(1) or dump(2).
std::string seal_json(std::string_view text);

// The text without the line. Error names `source` when the line is missing or does not belong to the rest.
std::string unseal_json(std::string_view text, const std::string& source);

}  // namespace satformer
