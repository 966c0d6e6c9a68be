#include "satformer/checkpoint/manifest.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/io/json_fields.h"
#include "satformer/io/sealed_json.h"
#include "satformer/io/strict_json.h"

namespace satformer::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxManifestBytes = 1 << 20;
constexpr int kFormat = 1;

std::string hex(std::uint32_t crc) { return fmt::format("{:08x}", crc); }

// The canonical form is the caller's to check: here 1F, 0001f and 1f are the same.
std::optional<std::uint32_t> from_hex(std::string_view text) {
  std::uint32_t crc = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), crc, 16);
  return fault == std::errc() && end == text.data() + text.size() ? std::optional(crc) : std::nullopt;
}

// A name with a folder in it would let a manifest point at files outside of its checkpoint.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos && name != kManifestFile;
}

ManifestEntry parse_entry(const std::string& name, const nlohmann::json& value, const std::string& source) {
  const JsonFields fields(value, fmt::format("{}: {}", source, in_quotes(name)));
  require(is_file_name(name), "{}: expected the name of a file in the same folder", fields.where());
  const std::optional<std::uint32_t> crc = from_hex(fields.text("crc32"));
  require(crc.has_value(), "{}: crc32: expected eight hex digits, got {}", fields.where(),
          in_quotes(fields.text("crc32")));
  return {fields.count("bytes"), *crc};
}

void verify_file(const fs::path& path, const ManifestEntry& expected) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  require(!error, "{}: {}", path.string(), error.message());
  require(bytes == expected.bytes, "{}: {} bytes, expected {} ({})", path.string(), bytes, expected.bytes,
          kManifestFile);
  const std::uint32_t crc = crc32_of_file(path);
  require(crc == expected.crc32, "{}: damaged: CRC-32 is {}, expected {} ({})", path.string(), hex(crc),
          hex(expected.crc32), kManifestFile);
}

}  // namespace

std::string format_manifest(const Manifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, entry] : manifest) files[name] = {{"bytes", entry.bytes}, {"crc32", hex(entry.crc32)}};
  return nlohmann::json{{"files", files}, {"format", kFormat}}.dump(1) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& source) {
  const nlohmann::json parsed = parse_strict_json(text, source);
  const JsonFields fields(parsed, source);
  require(fields.integer("format") == kFormat, "{}: format {}, this program reads format {}", source,
          fields.integer("format"), kFormat);
  Manifest manifest;
  for (const auto& [name, value] : fields.object("files").json().items()) {
    manifest[name] = parse_entry(name, value, source);
  }
  // Finds what a parser forgives: spaces, another order, keys that nobody asked for.
  require(format_manifest(manifest) == text, "{}: damaged: not in the form in which manifests are written", source);
  return manifest;
}

void write_manifest(const fs::path& directory) {
  Manifest manifest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name != kManifestFile) manifest[name] = {entry.file_size(), crc32_of_file(entry.path())};
  }
  write_file_atomically(directory / kManifestFile, seal_json(format_manifest(manifest)));
}

void verify_manifest(const fs::path& directory) {
  const fs::path path = directory / kManifestFile;
  const Manifest manifest =
      parse_manifest(unseal_json(read_file(path, kMaxManifestBytes), path.string()), path.string());
  for (const auto& [name, entry] : manifest) verify_file(directory / name, entry);
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    require(name == kManifestFile || manifest.contains(name), "{}: not listed in {}; remove it", entry.path().string(),
            kManifestFile);
  }
}

}  // namespace satformer::checkpoint
