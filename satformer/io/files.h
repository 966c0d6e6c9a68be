#pragma once
// Files that are either whole or absent. Every function throws Error with the path and the system's reason.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "satformer/io/file_descriptor.h"

namespace satformer {

// Whole contents. `max_bytes` guards against reading something that is not meant to be read whole.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{1} << 32);

// Writes beside, flushes to the disk, renames: a reader sees the old contents or the new, never a part. A link is
// followed; a device or pipe is written directly. Larger contents, piece by piece: AtomicFile in atomic_file.h.
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

// Flushes a file's contents, or a folder's entries, to the disk.
void sync_path(const std::filesystem::path& path);

// CRC-32 (ISO-HDLC, zlib's) of bytes, of a file; `seed` continues an earlier value.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t seed = 0);
std::uint32_t crc32_of_file(const std::filesystem::path& path);

// A read-only memory map of a whole file; an empty file maps to no bytes. The file must not shrink meanwhile.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void release() noexcept;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A folder that appears under its name only when it is complete.
//   StagedDirectory staged(run / "checkpoints/step_00000100");   makes a hidden folder beside the target
//   ... write files into staged.path() ...
//   staged.commit();                                              flushes every file, renames, flushes the parent
// Without commit() the destructor removes what was written. Missing parent folders are made.
// The hidden folder is `.NAME.staging-PID`, and is locked while it is in use.
class StagedDirectory {
 public:
  explicit StagedDirectory(std::filesystem::path target);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::filesystem::path& path() const { return staging_; }
  // The target must not exist yet.
  void commit();

  // Clears what killed processes left in `parent`: staging folders, and temporaries of write_file_atomically. What
  // a live process holds stays. A missing parent is fine.
  static void remove_stale(const std::filesystem::path& parent);

 private:
  std::filesystem::path target_;
  std::filesystem::path staging_;  // empty once committed
  FileDescriptor lock_;            // the staging folder itself; the kernel drops the lock when a process dies
};

}  // namespace satformer
