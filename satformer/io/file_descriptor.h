#pragma once
// An open file that closes itself, with calls that carry on after a signal and throw Error with the path and the
// system's reason. What files.cpp, atomic_file.cpp, staged_directory.cpp and safetensors_file.cpp are made of.
#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>

namespace satformer {

// Throws Error "cannot ACTION PATH: REASON" for the errno value `code`.
[[noreturn]] void fail_system(const char* action, const std::filesystem::path& path, int code);

// Makes a system call again while a signal interrupts it.
template <typename Call>
auto retry_interrupted(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

class FileDescriptor {
 public:
  // open(2) with O_CLOEXEC; `action` is the verb of the error: "read", "write".
  FileDescriptor(const std::filesystem::path& path, int flags, const char* action, mode_t mode = 0666);
  // Takes over an open descriptor; `path` is what errors name.
  FileDescriptor(int descriptor, std::filesystem::path path);
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }

  struct stat status() const;
  // Reads up to buffer.size() bytes; fewer only at the end of the file.
  std::size_t read(std::span<std::byte> buffer) const;
  void write(std::span<const std::byte> bytes) const;
  // Flushes to the disk. What knows no flushing (pipes, devices) counts as flushed.
  void sync() const;
  // Closes and reports what only closing tells (the full disk of a network file system).
  void close();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace satformer
