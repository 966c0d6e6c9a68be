#pragma once
// manifest.json: size and CRC-32 of every other file of a checkpoint's folder, and its own
// (satformer/io/sealed_json.h), so that one changed byte of any file is found and the right file named.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "satformer/checkpoint/layout.h"

namespace satformer::checkpoint {

struct ManifestEntry {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};
using Manifest = std::map<std::string, ManifestEntry>;  // by the file's name

// The text without its checksum, and canonical: the same entries give the same bytes.
std::string format_manifest(const Manifest& manifest);

// Takes the canonical text alone, so that no changed byte is forgiven; a name is that of a file in the folder itself.
// Error names `source`.
Manifest parse_manifest(const std::string& text, const std::string& source);

// Lists every file in `directory`.
void write_manifest(const std::filesystem::path& directory);

// Checks the folder against its manifest. Error names the file and what is wrong with it: missing, another size,
// another checksum, not listed, or a manifest that is not in the canonical form.
void verify_manifest(const std::filesystem::path& directory);

}  // namespace satformer::checkpoint
