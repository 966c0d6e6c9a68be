#include "satformer/io/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "satformer/core/error.h"

namespace satformer {

namespace fs = std::filesystem;

namespace {

// Linux moves at most 0x7ffff000 bytes a call.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

}  // namespace

void fail_system(const char* action, const fs::path& path, int code) {
  fail("cannot {} {}: {}", action, path.string(), std::generic_category().message(code));
}

FileDescriptor::FileDescriptor(const fs::path& path, int flags, const char* action, mode_t mode)
    : path_(path), descriptor_(retry_interrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); })) {
  if (descriptor_ < 0) fail_system(action, path, errno);
}

FileDescriptor::FileDescriptor(int descriptor, fs::path path) : path_(std::move(path)), descriptor_(descriptor) {}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

struct stat FileDescriptor::status() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) fail_system("examine", path_, errno);
  return status;
}

std::size_t FileDescriptor::read(std::span<std::byte> buffer) const {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    const std::size_t wanted = std::min(buffer.size() - filled, kMaxTransfer);
    const ssize_t count = retry_interrupted([&] { return ::read(descriptor_, buffer.data() + filled, wanted); });
    if (count < 0) fail_system("read", path_, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

void FileDescriptor::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const std::size_t wanted = std::min(bytes.size(), kMaxTransfer);
    const ssize_t count = retry_interrupted([&] { return ::write(descriptor_, bytes.data(), wanted); });
    if (count < 0) fail_system("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void FileDescriptor::sync() const {
  if (retry_interrupted([&] { return ::fsync(descriptor_); }) != 0 && errno != EINVAL && errno != EROFS) {
    fail_system("flush", path_, errno);
  }
}

void FileDescriptor::close() {
  // Even after EINTR, Linux has closed the descriptor: a second close could hit another thread's file.
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR) fail_system("write", path_, errno);
}

}  // namespace satformer
