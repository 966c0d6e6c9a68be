#include "satformer/io/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "satformer/core/error.h"
#include "satformer/io/atomic_file.h"
#include "satformer/io/file_descriptor.h"

namespace satformer {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

FileDescriptor open_to_read(const fs::path& path) {
  FileDescriptor file(path, O_RDONLY, "read");
  require(!S_ISDIR(file.status().st_mode), "cannot read {}: it is a folder, expected a file", path.string());
  return file;
}

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
  const FileDescriptor file = open_to_read(path);
  const auto require_small = [&](std::uint64_t size) {
    require(size <= max_bytes, "cannot read {}: it has more than the {} bytes expected at most", path.string(),
            max_bytes);
  };
  // The size is a hint: a pipe or /proc says 0, and a file may grow meanwhile.
  const auto expected = static_cast<std::uint64_t>(file.status().st_size);
  require_small(expected);
  std::string contents(static_cast<std::size_t>(expected) + 1, '\0');
  std::size_t size = 0;
  while (true) {
    size += file.read(std::as_writable_bytes(std::span(contents).subspan(size)));
    require_small(size);
    if (size < contents.size()) break;
    contents.resize(contents.size() + std::max(contents.size(), kChunkBytes));
  }
  contents.resize(size);
  return contents;
}

void write_file_atomically(const fs::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(contents)));
  file.commit();
}

void sync_path(const fs::path& path) { FileDescriptor(path, O_RDONLY, "flush").sync(); }

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t seed) {
  // zlib takes a null pointer for "give me the initial value" and would forget the seed.
  if (bytes.empty()) return seed;
  return static_cast<std::uint32_t>(
      ::crc32_z(seed, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::uint32_t crc32_of_file(const fs::path& path) {
  // Read, not mapped: a file that shrinks meanwhile must not kill the process.
  const FileDescriptor file = open_to_read(path);
  std::vector<std::byte> buffer(kChunkBytes);
  std::uint32_t checksum = 0;
  while (const std::size_t count = file.read(buffer)) {
    checksum = crc32_of(std::span(buffer).first(count), checksum);
  }
  return checksum;
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const FileDescriptor file = open_to_read(path);
  const struct stat status = file.status();
  require(S_ISREG(status.st_mode), "cannot map {}: it is no regular file", path.string());
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail_system("map", path, errno);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() { release(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void MappedFile::release() noexcept {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
  size_ = 0;
}

}  // namespace satformer
