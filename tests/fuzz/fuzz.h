#pragma once
// What the fuzz targets share. A target is a file in targets/ with one function, LLVMFuzzerTestOneInput, that hands
// bytes to a reader and holds it to its promises (docs/reliability.md).
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "satformer/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace satformer::fuzzing {

std::string_view bytes_of(const std::uint8_t* data, std::size_t size);

// Ends the program where a promise is broken.
void expect(bool holds, const char* promise);

// The text of an Error: one line that begins with the source, readable, and of a bounded length.
void expect_good_error(std::string_view text, std::string_view source);

// Whether a reader takes its input. The only exception that it may throw is an Error about `source`.
template <std::invocable Read>
bool accepts(std::string_view source, Read read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    expect_good_error(error.what(), source);
    return false;
  }
}

// While one lives, the process may allocate at most `bytes` more than it had. Counted in the fuzzers' own build, where
// the address sanitizer reports allocations; elsewhere not checked.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;

 private:
  std::size_t bytes_;
};

// A file for readers that want a path, alone in a folder of its own, which is removed at the end of the program.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write(std::string_view contents) const;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path folder() const { return path_.parent_path(); }

 private:
  std::filesystem::path path_;
};

}  // namespace satformer::fuzzing
