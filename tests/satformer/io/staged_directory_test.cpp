#include <signal.h>  // kill; NOLINT(modernize-deprecated-headers): <csignal> does not promise it
#include <sys/wait.h>
#include <unistd.h>

#include "satformer/io/atomic_file.h"
#include "satformer/io/files.h"
#include "tests/support/errors.h"
#include "tests/support/folders.h"

#include "tests/catch.h"

namespace satformer {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::error_of;
using testing::TemporaryFolder;
using Names = std::set<std::string>;

// A process that starts a checkpoint, a second file, and never ends by itself.
class StuckWriter {
 public:
  explicit StuckWriter(const fs::path& folder) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      StagedDirectory staged(folder / "step");
      write_file_atomically(staged.path() / "part", "half");
      AtomicFile file(folder / "log");
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    char signal = 0;
    if (::read(ready[0], &signal, 1) != 1) pid_ = -1;
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~StuckWriter() { kill(); }
  StuckWriter(const StuckWriter&) = delete;
  StuckWriter& operator=(const StuckWriter&) = delete;

  pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

TEST_CASE("a staged folder appears when it is committed", "[core][files]") {
  const TemporaryFolder folder;
  const fs::path target = folder / "run/checkpoints/step_00000100";
  StagedDirectory staged(target);
  CHECK(staged.path().parent_path() == target.parent_path());
  CHECK(staged.path().filename() == fmt::format(".step_00000100.staging-{}", ::getpid()));
  write_file_atomically(staged.path() / "model", "weights");
  fs::create_directories(staged.path() / "tokenizer/deep");
  write_file_atomically(staged.path() / "tokenizer/deep/file", "pieces");
  fs::create_symlink("model", staged.path() / "link");
  CHECK(!fs::exists(target));
  staged.commit();
  CHECK(read_file(target / "link") == "weights");
  CHECK(read_file(target / "tokenizer/deep/file") == "pieces");
  CHECK(std::distance(fs::directory_iterator(target.parent_path()), fs::directory_iterator()) == 1);
  CHECK(contains(error_of([&] { staged.commit(); }), "is committed already"));
}

TEST_CASE("a staged folder that is not committed leaves nothing", "[core][files]") {
  const TemporaryFolder folder;
  {
    StagedDirectory staged(folder / "step/");  // a trailing slash is no other name
    write_file_atomically(staged.path() / "model", "weights");
    CHECK(folder.names().size() == 1);
  }
  CHECK(folder.names().empty());
}

TEST_CASE("a staged folder never replaces anything", "[core][files]") {
  const TemporaryFolder folder;
  const fs::path target = folder / "step";
  {
    StagedDirectory staged(target);
    fs::create_directory(target);  // an empty folder, which rename(2) alone would replace
    CHECK(error_of([&] { staged.commit(); }) == "cannot write " + target.string() + ": File exists");
  }
  CHECK(folder.names() == Names{"step"});
  CHECK(contains(error_of([&] { StagedDirectory staged(target); }), "it exists already"));
  fs::remove(target);
  fs::create_symlink("nowhere", target);
  CHECK(contains(error_of([&] { StagedDirectory staged(target); }), "it exists already"));
}

TEST_CASE("a staged folder's errors name the target", "[core][files]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  const auto message_for = [](const fs::path& target) { return error_of([&] { StagedDirectory staged(target); }); };
  CHECK(contains(message_for(folder / "file/step"), (folder / "file").string()));
  CHECK(contains(message_for("/proc/satformer/step"), "/proc/satformer"));
  CHECK(contains(message_for(""), "expected the name of a new folder"));
  CHECK(contains(message_for("/"), "expected the name of a new folder"));
  CHECK(contains(message_for(folder / ".."), "expected the name of a new folder"));
  const StagedDirectory first(folder / "step");
  CHECK(contains(message_for(folder / "step"), "this process is writing it already"));
  CHECK(fs::exists(first.path()));
}

TEST_CASE("what a killed process left is cleared, what a live one writes is not", "[core][files]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "kept", "");
  fs::create_directory(folder / ".other.staging-");     // no process number
  fs::create_directory(folder / ".other.staging-12x");  // nor here
  const Names others = folder.names();

  StuckWriter writer(folder.path());
  REQUIRE(writer.pid() > 0);
  const StagedDirectory ours(folder / "ours");
  const Names before = folder.names();
  REQUIRE(before.contains(fmt::format(".step.staging-{}", writer.pid())));
  StagedDirectory::remove_stale(folder.path());
  CHECK(folder.names() == before);

  writer.kill();
  StagedDirectory::remove_stale(folder.path());
  Names expected = others;
  expected.insert(ours.path().filename().string());
  CHECK(folder.names() == expected);
}

TEST_CASE("an earlier process with our number counts as gone", "[core][files]") {
  const TemporaryFolder folder;
  const std::string name = fmt::format(".step.staging-{}", ::getpid());
  fs::create_directories(folder / name / "deep");
  {
    StagedDirectory staged(folder / "step");  // takes the name over
    CHECK(fs::is_empty(staged.path()));
  }
  fs::create_directories(folder / name / "deep");
  StagedDirectory::remove_stale(folder.path());
  CHECK(folder.names().empty());
  CHECK(error_of([&] { StagedDirectory::remove_stale(folder / "none"); }).empty());
}

}  // namespace
}  // namespace satformer
