#pragma once
// A safetensors file, read from start to end. No torch in here, so that a fuzzer can take it alone.
#include <cstddef>
#include <filesystem>
#include <span>

#include "satformer/io/file_descriptor.h"
#include "satformer/io/safetensors_header.h"

namespace satformer {

class SafetensorsFile {
 public:
  // Opens a regular file and checks its header against its size. Memory: a small multiple of the header's length.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }

  // The bytes of the next entry of the header, as many as it says. Error when the file became shorter meanwhile, or
  // when a BOOL is neither 0 nor 1 (which would be undefined behaviour in a bool).
  void read_next(std::span<std::byte> bytes);

 private:
  void read_exactly(std::span<std::byte> bytes) const;

  FileDescriptor file_;
  SafetensorsHeader header_;
  std::size_t next_ = 0;  // index of the entry that read_next gives
};

}  // namespace satformer
