#pragma once
// manifest.json: size and CRC-32 of every other file of a checkpoint's folder, and its own
// (satformer/core/sealed_json.h), so that one changed byte of any file is found and the right file named.
#include <filesystem>

namespace satformer::train {

constexpr const char* kManifestFile = "manifest.json";

// Lists every file in `directory`. The text is canonical: the same folder gives the same bytes.
void write_manifest(const std::filesystem::path& directory);

// Checks the folder against its manifest. Error names the file and what is wrong with it: missing, another size,
// another checksum, not listed, or a manifest that is not in the canonical form.
void verify_manifest(const std::filesystem::path& directory);

}  // namespace satformer::train
