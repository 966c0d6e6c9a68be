#include "satformer/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <system_error>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer {

namespace fs = std::filesystem;

namespace {

// The file a path means, through symbolic links, whether it exists yet or not.
fs::path follow_links(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as the kernel
  fs::path followed = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(followed, error); ++links) {
    if (links == kMaxLinks) fail_system("write", path, ELOOP);
    const fs::path link = fs::read_symlink(followed, error);
    if (error) fail_system("write", path, error.value());
    followed = followed.parent_path() / link;  // an absolute link replaces the folder
  }
  return followed;
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : target_(follow_links(path)), file_(-1, path) {
  std::error_code error;
  const fs::file_status status = fs::status(target_, error);
  require(!fs::is_directory(status) && target_.has_filename(), "cannot write {}: it names a folder", path.string());
  if (!fs::exists(status) || fs::is_regular_file(status)) {
    open_beside();
  } else {
    file_ = FileDescriptor(path, O_WRONLY, "write");
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

// The name is `.NAME.tmp-PID.N`, a pattern that StagedDirectory::remove_stale knows.
void AtomicFile::open_beside() {
  for (int attempt = 0; temporary_.empty(); ++attempt) {
    const fs::path candidate =
        target_.parent_path() / fmt::format(".{}.tmp-{}.{}", target_.filename().string(), ::getpid(), attempt);
    const int descriptor =
        retry_interrupted([&] { return ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) fail_system("write", file_.path(), errno);
    file_ = FileDescriptor(descriptor, file_.path());
    temporary_ = candidate;
  }
  (void)::flock(file_.get(), LOCK_EX | LOCK_NB);  // tells remove_stale that it is in use
  // The new file keeps the old one's mode; where that is refused, the default serves.
  struct stat old{};
  if (::stat(target_.c_str(), &old) == 0) (void)!::fchmod(file_.get(), old.st_mode & 07777);
}

void AtomicFile::commit() {
  file_.sync();
  file_.close();
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_system("write", file_.path(), errno);
  temporary_.clear();
  sync_path(target_.has_parent_path() ? target_.parent_path() : ".");
}

}  // namespace satformer
