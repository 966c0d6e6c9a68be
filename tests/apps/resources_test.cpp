// What every command does when the machine runs out of something: one line that says so, exit code 1, nothing partial
// left behind, earlier checkpoints as they were.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/manifest.h"
#include "satformer/io/files.h"
#include "tests/apps/child_process.h"
#include "tests/paths.h"
#include "tests/sanitized.h"
#include "tests/satformer/data/support.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::testing;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

// Prepared data, a run of ten steps with two checkpoints, and the commands that go on from there.
struct ResourceSetting {
  TemporaryFolder folder;
  fs::path text = folder.path() / "text.txt", data = folder.path() / "data", config = folder.path() / "tiny.json",
           run = folder.path() / "run", output = folder.path() / "output";
  std::map<std::string, std::string> checkpoint_files;  // of the run's checkpoints, by path

  ResourceSetting() {
    write_text(text, made_up_lines(300));
    fs::create_directory(output);
    must({"prepare", "--input", text, "--document-per", "line", "--vocab-size", "320", "--output", data});
    std::ofstream(config) << tiny_config_text(data);
    must({"train", config, "--output", run, "--threads", "1", "--set", "vocab_size=320", "--set", "max_steps=10"});
    checkpoint_files = files_below(run / "checkpoints");
  }

  Arguments train(const fs::path& into) const {
    return {"train",    config,  "--output",       into,    "--threads",   "1",
            "--resume", "--set", "vocab_size=320", "--set", "max_steps=30"};
  }
  Arguments prepare(const fs::path& into, const std::string& threads = "2") const {
    return {"prepare", "--input",   text,    "--document-per", "line",       "--vocab-size",
            "320",     "--threads", threads, "--output",       into / "data"};
  }
  Arguments eval(const fs::path& into) const {
    return {"eval", run, "--data", data, "--threads", "1", "--json", into / "result.json"};
  }
  Arguments export_to(const fs::path& into) const {
    return {"export", run, "--format", "torchscript", "--output", into / "model.pt"};
  }

  // `shell` is run before the command, which replaces the shell: limits, mounts.
  CommandResult under(const std::string& shell, const Arguments& arguments) const {
    Arguments line{"-c", shell + " && exec \"$0\" \"$@\"", cli()};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return Command(CommandLine{"/bin/sh", std::move(line), folder.path()}).wait();
  }

  static std::map<std::string, std::string> files_below(const fs::path& root) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) files[fs::relative(entry.path(), root)] = read_text(entry.path());
    }
    return files;
  }

  // A run that was not allowed to go on: the old checkpoints are as they were, new ones whole, nothing else is there.
  void require_intact(const fs::path& where) const {
    const auto files = files_below(where / "checkpoints");
    for (const auto& [name, contents] : checkpoint_files) {
      INFO(name);
      REQUIRE(files.contains(name));
      REQUIRE(files.at(name) == contents);
    }
    const auto checkpoints = checkpoint::list(where);
    for (const auto& checkpoint : checkpoints) REQUIRE_NOTHROW(checkpoint::verify_manifest(checkpoint));
    for (const auto& entry : fs::recursive_directory_iterator(where)) {
      INFO(entry.path());
      REQUIRE(entry.path().filename().string().front() != '.');
    }
  }

  // Whether the command failed, as it should; otherwise it did all of its work.
  bool failed(const CommandResult& result, const std::string& reason) const {
    INFO(result.err);
    require_intact(run);
    if (result.exit_code == 0) {
      fs::remove_all(output);
      fs::create_directory(output);
      return false;
    }
    REQUIRE(result.exit_code == 1);
    REQUIRE(std::count(result.err.begin(), result.err.end(), '\n') >= 1);
    const std::size_t last = result.err.rfind('\n', result.err.size() - 2);
    const std::string line = last == std::string::npos ? result.err : result.err.substr(last + 1);
    CHECK_THAT(line, StartsWith("satformer: error: ") && Contains(reason));
    CHECK(result.err.find("error: ") == result.err.rfind("error: "));
    CHECK(fs::is_empty(output));
    return true;
  }

  // The run goes on as if nothing had happened.
  void require_resumable() const {
    must(train(run));
    CHECK(checkpoint::list(run).back().filename() == "step_00000030");
  }

 private:
  void must(const Arguments& arguments) const {
    const CommandResult result = run_command(arguments, folder.path());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
};

// Runs `shell`, which runs the command ("$0" "$@"), in a mount namespace of its own; nothing where this user may not.
std::optional<CommandResult> in_namespace(const ResourceSetting& setting, const std::string& shell,
                                          const Arguments& arguments) {
  Arguments line{"--mount"};
  if (::geteuid() != 0) line.emplace_back("--map-root-user");
  const auto start = [&](const std::string& script, const Arguments& more) {
    Arguments all = line;
    all.insert(all.end(), {"/bin/sh", "-c", script, cli()});
    all.insert(all.end(), more.begin(), more.end());
    return Command(CommandLine{"/usr/bin/unshare", all, setting.folder.path()}).wait();
  };
  if (start(fmt::format("mount -t tmpfs none '{}'", setting.output.string()), {}).exit_code != 0) {
    WARN("not run: this user may not mount a file system");
    return std::nullopt;
  }
  return start(shell, arguments);
}

}  // namespace

TEST_CASE("no file descriptors left", "[apps][resources]") {
  if (kSanitized) {
    WARN("not run: the sanitizers need descriptors");
    return;
  }
  const ResourceSetting setting;
  // What the test itself inherited counts as well.
  const std::string close_all = "exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&- && ";
  const auto failures = [&](const Arguments& arguments, const std::vector<int>& limits) {
    return std::count_if(limits.begin(), limits.end(), [&](int limit) {
      return setting.failed(setting.under(fmt::format("{}ulimit -n {}", close_all, limit), arguments),
                            "Too many open files");
    });
  };
  CHECK(failures(setting.train(setting.run), {4, 5, 6, 7, 8}) == 5);
  CHECK(failures(setting.prepare(setting.output), {4, 5}) == 2);
  // These hold one file at a time open, which the dynamic linker needs as well.
  CHECK(failures(setting.eval(setting.output), {4}) == 0);
  CHECK(failures(setting.export_to(setting.output), {4}) == 0);
  setting.require_resumable();
}

TEST_CASE("a file may not grow any more", "[apps][resources]") {
  const ResourceSetting setting;
  // In blocks of 512 bytes; SIGXFSZ would end the process.
  for (const int blocks : {16, 128}) {
    const std::string limit = fmt::format("ulimit -f {}", blocks);
    CHECK(setting.failed(setting.under(limit, setting.train(setting.run)), "File too large"));
    if (blocks == 16) CHECK(setting.failed(setting.under(limit, setting.prepare(setting.output)), "File too large"));
    CHECK(setting.failed(setting.under(limit, setting.export_to(setting.output)), "File too large"));
  }
  setting.require_resumable();
}

TEST_CASE("no memory left", "[apps][resources]") {
  if (kSanitized) {
    WARN("not run: the sanitizers need the address space");
    return;
  }
  const ResourceSetting setting;
  const auto under_kibibytes = [&](int kibibytes, const Arguments& arguments) {
    // One thread: OpenMP, which cannot start another, would end the process itself.
    return setting.under(fmt::format("export OMP_NUM_THREADS=1; ulimit -v {}", kibibytes), arguments);
  };
  const auto under = [&](int mebibytes, const Arguments& arguments) {
    return under_kibibytes(mebibytes * 1024, arguments);
  };
  // The least that LibTorch itself can be loaded in; below, the program does not begin.
  int too_little = 0, enough = 4096;
  while (enough - too_little > 2) {
    const int middle = (too_little + enough) / 2;
    (under(middle, {"--version"}).exit_code == 0 ? enough : too_little) = middle;
  }
  int failures = 0;
  for (const int more : {0, 8, 24}) {
    for (const Arguments& arguments : {setting.train(setting.run), setting.prepare(setting.output),
                                       setting.eval(setting.output), setting.export_to(setting.output)}) {
      INFO(enough + more << " MiB: " << arguments.front());
      failures += setting.failed(under(enough + more, arguments), "") ? 1 : 0;
    }
  }
  // In small steps, so that on every processor some step ends in the middle of reading, computing and unwinding.
  for (int more = 0; more < 2048; more += 128) {
    INFO(enough << " MiB and " << more << " KiB: eval");
    failures += setting.failed(under_kibibytes(enough * 1024 + more, setting.eval(setting.output)), "") ? 1 : 0;
  }
  CHECK(failures > 0);
  // Threads, whose stacks of 8 MiB do not fit; a model, whose parameters do not.
  CHECK(setting.failed(under(enough + 200, setting.prepare(setting.output, "100")), "cannot start another thread"));
  Arguments large = setting.train(setting.output / "large");
  large.insert(large.end(), {"--set", "hidden_size=2048", "--set", "intermediate_size=8192"});
  CHECK(setting.failed(under(enough + 300, large), "out of memory: no "));
  setting.require_resumable();
}

TEST_CASE("no space left on the disk", "[apps][resources]") {
  const ResourceSetting setting;
  const fs::path disk = setting.folder.path() / "disk", after = setting.folder.path() / "after";
  fs::create_directory(disk);
  // A file system that goes with its namespace: what is on it at the end is copied out.
  const auto on_disk = [&](int kibibytes, const std::string& before, const Arguments& arguments) {
    fs::remove_all(after);
    fs::create_directory(after);
    const std::string script =
        fmt::format("mount -t tmpfs -o size={}k none '{}' && {}; \"$0\" \"$@\"; code=$?; cp -a '{}/.' '{}'; exit $code",
                    kibibytes, disk.string(), before, disk.string(), after.string());
    return in_namespace(setting, script, arguments);
  };
  const auto holds = fmt::format("cp -a '{}' '{}/run'", setting.run.string(), disk.string());
  std::uintmax_t run_bytes = 0;
  for (const auto& [name, contents] : ResourceSetting::files_below(setting.run)) run_bytes += contents.size();
  const int run_kibibytes = static_cast<int>(run_bytes / 1024);
  // Little more than the run: the next checkpoint does not fit, whichever file of it.
  for (const int free : {80, 250}) {
    const auto result = on_disk(run_kibibytes + free, holds, setting.train(disk / "run"));
    if (!result) return;
    CHECK(setting.failed(*result, "No space left on device"));
    setting.require_intact(after / "run");
  }
  CHECK(setting.failed(*on_disk(12, "true", setting.prepare(disk)), "No space left on device"));
  CHECK(fs::is_empty(after));
  CHECK(setting.failed(*on_disk(40, "true", setting.export_to(disk)), "No space left on device"));
  CHECK(fs::is_empty(after));
  const auto full = fmt::format("(head -c 100000 /dev/zero >'{}/fill' || true) 2>/dev/null", disk.string());
  CHECK(setting.failed(*on_disk(8, full, setting.eval(disk)), "No space left on device"));
  CHECK_FALSE(fs::exists(after / "result.json"));
  setting.require_resumable();
}

TEST_CASE("a folder that may only be read", "[apps][resources]") {
  const ResourceSetting setting;
  // Root writes where the mode forbids it, so a mount must forbid it.
  const auto read_only = [&](const fs::path& folder, const Arguments& arguments) {
    const std::string script = fmt::format(
        "mount --bind '{0}' '{0}' && mount -o remount,bind,ro '{0}' && exec \"$0\" \"$@\"", folder.string());
    return in_namespace(setting, script, arguments);
  };
  const auto result = read_only(setting.run, setting.train(setting.run));
  if (!result) return;
  const std::string reason = "Read-only file system";
  CHECK(setting.failed(*result, reason));
  CHECK(setting.failed(*read_only(setting.output, setting.train(setting.output / "new")), reason));
  CHECK(setting.failed(*read_only(setting.output, setting.prepare(setting.output)), reason));
  CHECK(setting.failed(*read_only(setting.output, setting.eval(setting.output)), reason));
  CHECK(setting.failed(*read_only(setting.output, setting.export_to(setting.output)), reason));
  CHECK_FALSE(setting.failed(*read_only(setting.run, setting.eval(setting.output)), reason));  // reading is enough
  setting.require_resumable();
}
