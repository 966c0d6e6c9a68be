#include "satformer/train/manifest.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "satformer/core/error.h"
#include "satformer/core/files.h"
#include "satformer/core/sealed_json.h"

namespace satformer::train {
namespace {

constexpr std::uint64_t kMaxManifestBytes = 1 << 20;
constexpr int kFormat = 1;

std::string hex(std::uint32_t crc) { return fmt::format("{:08x}", crc); }

std::string canonical_text(const nlohmann::json& manifest) { return manifest.dump(1) + "\n"; }

nlohmann::json read_manifest(const std::filesystem::path& path) {
  const std::string text = unseal_json(read_file(path, kMaxManifestBytes), path.string());
  auto manifest = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool valid = manifest.is_object() && manifest.value("format", nlohmann::json()) == kFormat &&
                     manifest.contains("files") && manifest["files"].is_object();
  // The comparison finds what a parser forgives: spaces, duplicate keys, another order. Invalid UTF-8 does not parse.
  require(valid && canonical_text(manifest) == text, "{}: damaged, or not a manifest of format {}", path.string(),
          kFormat);
  return manifest;
}

void verify_file(const std::filesystem::path& path, const nlohmann::json& entry) {
  const bool valid = entry.is_object() && entry.size() == 2 && entry.contains("bytes") && entry.contains("crc32") &&
                     entry["bytes"].is_number_unsigned() && entry["crc32"].is_string();
  require(valid, "{}: its entry in {} is damaged", path.string(), kManifestFile);
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  require(!error, "{}: {}", path.string(), error.message());
  require(bytes == entry["bytes"], "{}: {} bytes, expected {} ({})", path.string(), bytes,
          entry["bytes"].get<std::uint64_t>(), kManifestFile);
  const std::string crc = hex(crc32_of_file(path));
  const auto expected = entry["crc32"].get<std::string>();
  require(crc == expected, "{}: damaged: CRC-32 is {}, expected {} ({})", path.string(), crc, expected, kManifestFile);
}

}  // namespace

void write_manifest(const std::filesystem::path& directory) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name == kManifestFile) continue;
    files[name] = {{"bytes", entry.file_size()}, {"crc32", hex(crc32_of_file(entry.path()))}};
  }
  write_file_atomically(directory / kManifestFile, seal_json(canonical_text({{"files", files}, {"format", kFormat}})));
}

void verify_manifest(const std::filesystem::path& directory) {
  const nlohmann::json manifest = read_manifest(directory / kManifestFile);
  for (const auto& [name, entry] : manifest["files"].items()) verify_file(directory / name, entry);
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    require(name == kManifestFile || manifest["files"].contains(name), "{}: not listed in {}; remove it",
            entry.path().string(), kManifestFile);
  }
}

}  // namespace satformer::train
