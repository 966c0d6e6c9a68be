#include "satformer/io/safetensors_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"

namespace satformer {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path, O_RDONLY, "read") {
  const std::string source = path.string();
  const struct stat status = file_.status();
  require(S_ISREG(status.st_mode), "cannot read {}: expected a regular file", source);
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  std::array<std::byte, kSafetensorsPrefixBytes> prefix{};
  const std::size_t count = file_.read(prefix);
  const std::uint64_t length = safetensors_header_length(std::span(prefix).first(count), file_size, source);
  std::string json(length, '\0');
  read_exactly(std::as_writable_bytes(std::span(json)));
  header_ = parse_safetensors_header(json, file_size - kSafetensorsPrefixBytes - length, source);
}

void SafetensorsFile::read_next(std::span<std::byte> bytes) {
  const SafetensorsEntry& entry = header_.entries.at(next_++);
  require(bytes.size() == entry.end - entry.begin, "{}: tensor {}: its {} bytes were asked for as {}",
          file_.path().string(), in_quotes(entry.name), entry.end - entry.begin, bytes.size());
  read_exactly(bytes);
  if (entry.type == SafetensorsType::boolean) {
    const auto other = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    require(other == bytes.end(), "{}: tensor {}: a BOOL byte that is neither 0 nor 1", file_.path().string(),
            in_quotes(entry.name));
  }
}

void SafetensorsFile::read_exactly(std::span<std::byte> bytes) const {
  const std::size_t count = file_.read(bytes);
  require(count == bytes.size(), "{}: the file became shorter while it was read", file_.path().string());
}

}  // namespace satformer
