#include <fcntl.h>
#include <signal.h>  // kill; NOLINT(modernize-deprecated-headers): <csignal> does not promise it
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStagingMark = ".staging-";
constexpr std::string_view kTemporaryMark = ".tmp-";

// An empty parent means the working directory.
fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

// Makes a folder and what is missing above it, each flushed into its parent so that a crash cannot lose it.
void make_folders(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  if (parent_of(path) != path) make_folders(parent_of(path));
  fs::create_directory(path, error);
  if (error) fail_system("make the folder", path, error.value());
  sync_path(parent_of(path));
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_system("remove", path, error.value());
}

std::optional<pid_t> parse_pid(std::string_view digits) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && pid > 0 ? std::optional(pid) : std::nullopt;
}

// The process that made `.NAME.staging-PID` or `.NAME.tmp-PID.N`; nothing for other names.
std::optional<pid_t> owner_of(std::string_view name) {
  if (name.empty() || name.front() != '.') return std::nullopt;
  if (const auto mark = name.rfind(kStagingMark); mark != name.npos) {
    return parse_pid(name.substr(mark + kStagingMark.size()));
  }
  const auto mark = name.rfind(kTemporaryMark);
  if (mark == name.npos) return std::nullopt;
  const std::string_view tail = name.substr(mark + kTemporaryMark.size());
  return parse_pid(tail.substr(0, tail.find('.')));
}

// Whether the owner is gone. A process of another container may share the folder but not the numbering, and our
// own number may be an earlier process's: so the lock has the last word, where the file system has locks.
bool is_stale(const fs::path& path, pid_t owner) {
  const bool ours = owner == ::getpid();
  if (!ours && (::kill(owner, 0) == 0 || errno == EPERM)) return false;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const FileDescriptor file(descriptor, path);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
  return errno != EWOULDBLOCK && !ours;
}

void sync_tree(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::file_type type = entry->symlink_status(error).type();
    if (error) break;
    if (type == fs::file_type::directory) sync_tree(entry->path());
    if (type == fs::file_type::regular) sync_path(entry->path());
  }
  if (error) fail_system("flush", folder, error.value());
  sync_path(folder);
}

// rename(2) would replace an empty folder; where the file system cannot refuse that itself, a look before it must do.
int rename_without_replacing(const fs::path& from, const fs::path& to) {
  const int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return result;
  struct stat status{};
  if (::lstat(to.c_str(), &status) == 0) {
    errno = EEXIST;
    return -1;
  }
  return ::rename(from.c_str(), to.c_str());
}

// Makes the staging folder, locked; one that a killed process left under the same name is cleared first.
FileDescriptor make_staging(const fs::path& staging, const fs::path& target) {
  if (::mkdir(staging.c_str(), 0777) != 0) {
    if (errno != EEXIST) fail_system("write", target, errno);
    require(is_stale(staging, ::getpid()), "cannot write {}: this process is writing it already ({})", target.string(),
            staging.string());
    remove_tree(staging);
    if (::mkdir(staging.c_str(), 0777) != 0) fail_system("write", target, errno);
  }
  const int descriptor = ::open(staging.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    const int code = errno;
    ::rmdir(staging.c_str());
    fail_system("write", target, code);
  }
  (void)::flock(descriptor, LOCK_EX | LOCK_NB);  // without locks the process number must do
  return FileDescriptor(descriptor, target);
}

}  // namespace

StagedDirectory::StagedDirectory(fs::path target) : target_(std::move(target)), lock_(-1, target_) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "run/step/" means run/step
  std::error_code error;
  require(target_.has_filename() && target_.filename() != "." && target_.filename() != "..",
          "cannot write \"{}\": expected the name of a new folder", target_.string());
  require(!fs::exists(fs::symlink_status(target_, error)), "cannot write {}: it exists already", target_.string());
  make_folders(parent_of(target_));
  const std::string name = fmt::format(".{}{}{}", target_.filename().string(), kStagingMark, ::getpid());
  const fs::path staging = parent_of(target_) / name;
  lock_ = make_staging(staging, target_);
  staging_ = staging;
}

StagedDirectory::~StagedDirectory() {
  if (staging_.empty()) return;
  // Removing needs a descriptor; where they have run out, the lock's is the one there is.
  {
    const FileDescriptor closed = std::move(lock_);
  }
  try {
    std::error_code ignored;
    fs::remove_all(staging_, ignored);
  } catch (const std::bad_alloc&) {
    // The next process removes it.
  }
}

void StagedDirectory::commit() {
  require(!staging_.empty(), "{} is committed already", target_.string());
  sync_tree(staging_);
  if (rename_without_replacing(staging_, target_) != 0) fail_system("write", target_, errno);
  staging_.clear();
  lock_.close();
  sync_path(parent_of(target_));
}

void StagedDirectory::remove_stale(const fs::path& parent) {
  std::error_code error;
  fs::directory_iterator entry(parent, error);
  if (error == std::errc::no_such_file_or_directory) return;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto owner = owner_of(entry->path().filename().string());
    if (owner && is_stale(entry->path(), *owner)) remove_tree(entry->path());
  }
  if (error) fail_system("read", parent, error.value());
}

}  // namespace satformer
