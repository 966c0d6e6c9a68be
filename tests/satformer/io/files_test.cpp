#include "satformer/io/files.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <thread>

#include "satformer/io/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/folders.h"
#include "tests/support/text.h"

#include "tests/catch.h"

namespace satformer {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;
using testing::random_bytes;
using testing::TemporaryFolder;
using Names = std::set<std::string>;

// While it lives, no file can grow beyond `bytes`: a write fails half-way, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit old_{};
};

TEST_CASE("a file is read as it was written", "[core][files]") {
  const TemporaryFolder folder;
  for (const std::size_t size : {0UL, 1UL, 4096UL, 3'000'001UL}) {
    const std::string text = random_bytes(size);
    write_file_atomically(folder / "file", text);
    CHECK((read_file(folder / "file") == text));
  }
  CHECK(folder.names() == Names{"file"});
  // A file whose size the system gives as 0.
  CHECK(contains(read_file("/proc/self/status"), "Pid:"));
}

TEST_CASE("reading names the path and the reason", "[core][files]") {
  const TemporaryFolder folder;
  const std::string missing = (folder / "none").string();
  CHECK(error_of([&] { read_file(missing); }) == "cannot read " + missing + ": No such file or directory");
  CHECK(contains(error_of([&] { read_file(folder.path()); }), "it is a folder"));
  CHECK(contains(error_of([&] { crc32_of_file(folder.path()); }), "it is a folder"));
  CHECK(contains(error_of([&] { MappedFile map(folder.path()); }), "it is a folder"));
  CHECK(contains(error_of([&] { MappedFile map("/dev/null"); }), "no regular file"));
  CHECK(contains(error_of([&] { sync_path(missing); }), "cannot flush " + missing));
  write_file_atomically(folder / "file", "12345");
  CHECK(read_file(folder / "file", 5) == "12345");
  CHECK(contains(error_of([&] { read_file(folder / "file", 4); }), "more than the 4 bytes"));
  CHECK(contains(error_of([&] { read_file("/dev/zero", 1000); }), "more than the 1000 bytes"));
}

TEST_CASE("writing replaces a file whole, keeps its mode and follows links", "[core][files]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "file") == "new");
  CHECK(fs::status(folder / "file").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  fs::create_symlink("not yet", folder / "dangling");
  write_file_atomically(folder / "dangling", "made");
  CHECK(read_file(folder / "not yet") == "made");
  fs::create_symlink(folder / "link", folder / "chain");  // absolute, and two links long
  write_file_atomically(folder / "chain", "newer");
  CHECK(read_file(folder / "file") == "newer");
  fs::create_symlink("loop", folder / "loop");
  CHECK(contains(error_of([&] { write_file_atomically(folder / "loop", ""); }), "Too many levels of symbolic links"));
}

TEST_CASE("a path without a folder is written in the working directory", "[core][files]") {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file_atomically("bare", "text");
  StagedDirectory staged("stage");
  staged.commit();
  fs::current_path(before);
  CHECK(folder.names() == Names{"bare", "stage"});
}

TEST_CASE("a failed write leaves the old file and nothing else", "[core][files]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_file_atomically(path, "old");
  std::string message;
  {
    const FileSizeLimit limit(100'000);
    message = error_of([&] { write_file_atomically(path, random_bytes(1'000'000)); });
  }
  CHECK(message == "cannot write " + path.string() + ": File too large");
  CHECK(read_file(path) == "old");
  CHECK(folder.names() == Names{"file"});

  AtomicFile abandoned(path);
  abandoned.write(std::as_bytes(std::span(std::string_view("half"))));
  CHECK(folder.names().size() == 2);
  {
    const AtomicFile second(path);
  }  // two writers at once do not meet
  CHECK(read_file(path) == "old");
}

TEST_CASE("what cannot be written is one clear error", "[core][files]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  const auto message_for = [](const fs::path& path) { return error_of([&] { write_file_atomically(path, "text"); }); };
  CHECK(message_for("/dev/full") == "cannot write /dev/full: No space left on device");
  CHECK(fs::is_character_file("/dev/full"));
  CHECK(contains(message_for(folder / "file/below"), "cannot write " + (folder / "file/below").string()));
  CHECK(contains(message_for(folder / "none/file"), "No such file or directory"));
  CHECK(contains(message_for(folder.path()), "it names a folder"));
  CHECK(contains(message_for(folder.path() / ""), "it names a folder"));
  CHECK(contains(message_for(""), "cannot write"));
  CHECK(contains(message_for("/proc/satformer"), "cannot write /proc/satformer"));
  CHECK(folder.names() == Names{"file"});
}

TEST_CASE("a pipe is written directly, through signals and short writes", "[core][files]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  struct sigaction action{}, old{};
  action.sa_handler = [](int) {};  // without SA_RESTART: calls are interrupted
  ::sigaction(SIGUSR1, &action, &old);

  const std::string text = random_bytes(1'000'000);
  std::string received;
  std::thread reader([&received, &path, writer = ::pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::pthread_kill(writer, SIGUSR1);  // while open() waits for a reader
    std::ifstream pipe(path, std::ios::binary);
    std::array<char, 10'000> buffer{};
    while (pipe.read(buffer.data(), buffer.size()) || pipe.gcount() > 0) {
      received.append(buffer.data(), static_cast<std::size_t>(pipe.gcount()));
      if (received.size() < 900'000) ::pthread_kill(writer, SIGUSR1);
    }
  });
  const std::string message = error_of([&] { write_file_atomically(path, text); });
  reader.join();
  ::sigaction(SIGUSR1, &old, nullptr);
  CHECK(message.empty());
  CHECK((received == text));
  CHECK(fs::is_fifo(path));
}

TEST_CASE("crc32 is zlib's and continues", "[core][files]") {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  CHECK(crc32_of(bytes("123456789")) == 0xCBF43926U);  // the check value of CRC-32/ISO-HDLC
  CHECK(crc32_of({}) == 0U);
  CHECK(crc32_of(bytes("6789"), crc32_of(bytes("12345"))) == 0xCBF43926U);
  CHECK(crc32_of({}, 77U) == 77U);
  const TemporaryFolder folder;
  const std::string text = random_bytes(2'500'000);
  write_file_atomically(folder / "file", text);
  CHECK(crc32_of_file(folder / "file") == crc32_of(bytes(text)));
}

TEST_CASE("a mapped file gives its bytes, also after moving", "[core][files]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "abc");
  write_file_atomically(folder / "empty", "");
  MappedFile map(folder / "file");
  MappedFile other(folder / "empty");
  CHECK(other.bytes().empty());
  other = std::move(map);
  REQUIRE(other.bytes().size() == 3);
  CHECK(other.bytes()[2] == std::byte{'c'});
  CHECK(other.path() == folder / "file");
  const MappedFile third(std::move(other));
  CHECK(third.bytes()[0] == std::byte{'a'});
}

}  // namespace
}  // namespace satformer
