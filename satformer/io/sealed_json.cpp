#include "satformer/io/sealed_json.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer {
namespace {

constexpr std::string_view kOpening = "{\n";

}  // namespace

std::string seal_json(std::string_view text) {
  const std::string_view members = text.substr(std::min(kOpening.size(), text.size()));
  const std::size_t indent = members.find_first_not_of(' ');
  require(text.starts_with(kOpening) && indent != std::string_view::npos && members[indent] == '"',
          "only the indented text of a JSON object with members can carry its checksum");
  return fmt::format("{}{}\"crc32\": \"{:08x}\",\n{}", kOpening, members.substr(0, indent),
                     crc32_of(std::as_bytes(std::span(text))), members);
}

std::string unseal_json(std::string_view text, const std::string& source) {
  const std::size_t line_end = text.find('\n', kOpening.size());
  std::string rest(kOpening);
  if (line_end != std::string_view::npos) rest += text.substr(line_end + 1);
  const std::size_t member = rest.find_first_not_of(' ', kOpening.size());
  // The whole line is compared, so that a change in it is found too.
  const bool whole = member != std::string::npos && rest[member] == '"' && seal_json(rest) == text;
  require(whole, "{}: damaged, or not written by this program: the checksum in its second line is not that of the rest",
          source);
  return rest;
}

}  // namespace satformer
