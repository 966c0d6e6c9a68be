#pragma once
// A file that takes its name only when it is whole.
//   AtomicFile file(path);
//   file.write(bytes); ...
//   file.commit();          flushes, renames, flushes the folder
// Without commit(), or after an error, the old file stands and nothing new stays. A symbolic link is followed (it
// stays a link); a device or a pipe is written directly.
#include <cstddef>
#include <filesystem>
#include <span>

#include "satformer/io/file_descriptor.h"

namespace satformer {

class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes) { file_.write(bytes); }
  void commit();

 private:
  void open_beside();

  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty: written directly, or renamed already
  FileDescriptor file_;
};

}  // namespace satformer
