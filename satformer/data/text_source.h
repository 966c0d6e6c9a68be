#pragma once
// A file as a stream of checked text.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "satformer/data/byte_source.h"

namespace satformer::data {

class TextSource {
 public:
  explicit TextSource(const std::filesystem::path& path);

  // The next part: whole characters of valid UTF-8 without U+0000 (which SentencePiece cannot hold), at most 256 KiB;
  // empty at the end. Valid until the next call. A byte-order mark at the file's start is skipped. Error names the
  // file and the offset of the byte in the decompressed contents.
  std::string_view next();

  std::uint64_t file_position() const { return source_->file_position(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  [[noreturn]] void fail_invalid(std::size_t index, bool at_end) const;

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t taken_ = 0;     // bytes at the buffer's start that the caller has had
  std::size_t filled_ = 0;    // bytes in the buffer
  std::uint64_t offset_ = 0;  // of the buffer's first byte in the decompressed contents
};

}  // namespace satformer::data
