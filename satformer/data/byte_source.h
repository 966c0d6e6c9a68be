#pragma once
// Files as streams of bytes, decompressed by their extension: .gz (zlib), .zst (zstd), anything else as it is.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace satformer::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the start of `out` and returns how much; 0 only at the end. Error names the file when it cannot be read, is
  // cut off or corrupt.
  virtual std::size_t read(std::span<char> out) = 0;
  // Bytes of the file, as it lies on the disk, that have been consumed.
  virtual std::uint64_t file_position() const = 0;
};

// Several gzip members or zstd frames in one file are one stream. A zstd frame may ask for a window of at most
// 128 MiB, which bounds the memory. Error when the path is no regular file.
std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path);

// The path without .gz or .zst.
std::filesystem::path without_compression_suffix(const std::filesystem::path& path);

}  // namespace satformer::data
