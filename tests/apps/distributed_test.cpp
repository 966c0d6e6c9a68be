// Training with several ranks through the executable: the same run on any number of ranks, and failures.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/io/files.h"
#include "satformer/runtime/safetensors.h"
#include "tests/apps/child_process.h"
#include "tests/paths.h"
#include "tests/satformer/distributed/scenarios.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::testing;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Clock = std::chrono::steady_clock;
using Arguments = std::vector<std::string>;

constexpr const char* kLastStep = "step_00000020";

struct DistributedSetting {
  TemporaryFolder folder;
  std::filesystem::path data = make_tiny_data(folder.path() / "data");
  std::filesystem::path config = folder.path() / "tiny.json";

  DistributedSetting() { std::ofstream(config) << tiny_config_text(data); }

  std::filesystem::path run(const std::string& name) const { return folder.path() / name; }
  // satformer train CONFIG --output NAME --threads 1 ...
  Arguments train(const std::string& name, const Arguments& more) const {
    Arguments all = {"train", config.string(), "--output", run(name).string(), "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  CommandResult finish(const std::string& name, const Arguments& more) const {
    return run_command(train(name, more), folder.path());
  }
  void require_finished(const std::string& name, const Arguments& more) const {
    const CommandResult result = finish(name, more);
    INFO(name << ": " << result.err);
    REQUIRE(result.exit_code == 0);
  }

  // A rank of a world that no launcher of ours started.
  std::unique_ptr<Command> start_rank(const std::string& name, const Arguments& more,
                                      const Arguments& environment) const {
    const std::filesystem::path own = folder.path() / fmt::format("output{}", ++started);
    std::filesystem::create_directory(own);
    return std::make_unique<Command>(CommandLine{cli(), train(name, more), own, environment});
  }
  mutable int started = 0;
};

Arguments torchrun_variables(int rank, int size, int port) {
  return {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank), fmt::format("WORLD_SIZE={}", size),
          "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port)};
}

std::vector<nlohmann::json> lines_with(const std::filesystem::path& run, const char* key) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);  // it may be half written
    if (object.is_object() && object.contains(key)) lines.push_back(std::move(object));
  }
  return lines;
}

void require_same_losses(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* key : {"loss", "val_loss"}) {
    const auto x = lines_with(a, key), y = lines_with(b, key);
    REQUIRE(x.size() == y.size());
    REQUIRE(!x.empty());
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(key << " of step " << x[i]["step"]);
      REQUIRE(x[i]["step"] == y[i]["step"]);
      const double expected = x[i][key], actual = y[i][key];
      REQUIRE(std::abs(actual - expected) <= 1e-5 * std::abs(expected));
      for (const char* count : {"tokens", "val_tokens"}) {
        if (x[i].contains(count)) REQUIRE(x[i][count] == y[i][count]);
      }
    }
  }
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b, const char* file) {
  return read_file(a / "checkpoints" / kLastStep / file) == read_file(b / "checkpoints" / kLastStep / file);
}

void wait_for_step(Command& command, const std::filesystem::path& run, std::size_t steps) {
  const auto deadline = Clock::now() + 60s;
  while (command.running() && Clock::now() < deadline && lines_with(run, "loss").size() < steps) {
    std::this_thread::sleep_for(5ms);
  }
}

// The processes that the launcher has started, by rank.
std::map<int, pid_t> ranks_of(const Command& launcher) {
  std::map<int, pid_t> ranks;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", launcher.pid()));
  for (pid_t pid = 0; children >> pid;) {
    std::ifstream environment(fmt::format("/proc/{}/environ", pid));
    for (std::string entry; std::getline(environment, entry, '\0');) {
      if (entry.starts_with("RANK=")) ranks[std::stoi(entry.substr(5))] = pid;
    }
  }
  return ranks;
}

bool exists(pid_t pid) { return kill(pid, 0) == 0; }

bool all_gone(const std::map<int, pid_t>& ranks) {
  const auto deadline = Clock::now() + 10s;
  bool gone = false;
  while (!gone && Clock::now() < deadline) {
    std::this_thread::sleep_for(5ms);
    gone = std::none_of(ranks.begin(), ranks.end(), [](const auto& rank) { return exists(rank.second); });
  }
  return gone;
}

const Arguments kEndless = {"--set", "max_steps=100000", "--set", "checkpoint_interval=5",
                            "--set", "timeout=5",        "--set", "eval_interval=0"};

// Two ranks that train without end, from the moment when they have a checkpoint.
struct TrainingRanks {
  const DistributedSetting& setting;
  Command launcher;
  std::map<int, pid_t> ranks;

  explicit TrainingRanks(const DistributedSetting& setting)
      : setting(setting), launcher(setting.train("endless", with_ranks()), setting.folder.path()) {
    wait_for_step(launcher, setting.run("endless"), 6);
    ranks = ranks_of(launcher);
    REQUIRE(ranks.size() == 2);
  }
  static Arguments with_ranks() {
    Arguments all = kEndless;
    all.insert(all.end(), {"--nproc", "2"});
    return all;
  }

  // The launcher's end after the failure; every checkpoint is whole and no process is left.
  CommandResult end(std::chrono::seconds limit) {
    const auto start = Clock::now();
    while (launcher.running() && Clock::now() - start < limit) std::this_thread::sleep_for(5ms);
    CHECK_FALSE(launcher.running());
    launcher.send(SIGKILL);
    CommandResult result = launcher.wait();
    CHECK(all_gone(ranks));
    const auto checkpoints = checkpoint::list(setting.run("endless"));
    CHECK_FALSE(checkpoints.empty());
    for (const auto& checkpoint : checkpoints) CHECK_NOTHROW(checkpoint::load_model(checkpoint));
    return result;
  }
};

}  // namespace

TEST_CASE("1, 2, 3 and 4 ranks see the same data and give the same losses", "[apps][distributed]") {
  const DistributedSetting setting;
  setting.require_finished("one", {});
  for (const int ranks : {2, 3, 4}) {
    const std::string name = fmt::format("ranks{}", ranks);
    setting.require_finished(name, {"--nproc", std::to_string(ranks), "--set", "bucket_mb=0.01"});
    require_same_losses(setting.run("one"), setting.run(name));
  }
  // More ranks than sequences: some have none.
  const Arguments small = {"--set", "batch_size=1", "--set", "gradient_accumulation_steps=2"};
  setting.require_finished("small_one", small);
  Arguments many = small;
  many.insert(many.end(), {"--nproc", "3"});
  setting.require_finished("small_three", many);
  require_same_losses(setting.run("small_one"), setting.run("small_three"));
}

TEST_CASE("a divided optimiser gives the same run, bit for bit, in the same format", "[apps][distributed]") {
  const DistributedSetting setting;
  setting.require_finished("whole", {"--nproc", "3"});
  setting.require_finished("divided", {"--nproc", "3", "--set", "shard_optimizer=true", "--set", "check_interval=3"});
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    INFO(file);
    CHECK(same_file(setting.run("whole"), setting.run("divided"), file));
  }
}

TEST_CASE("a checkpoint of N ranks goes on with M", "[apps][distributed]") {
  const DistributedSetting setting;
  const Arguments common = {"--set", "lr_decay_style=constant", "--set", "eval_interval=10"};
  const auto train = [&](const std::string& name, const Arguments& more, const Arguments& other) {
    Arguments all = common;
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), other.begin(), other.end());
    setting.require_finished(name, all);
  };
  const auto train_half = [&](const std::string& name, const Arguments& more) {
    train(name, {"--set", "max_steps=10"}, more);
  };
  const auto train_rest = [&](const std::string& name, const Arguments& more) { train(name, {"--resume"}, more); };
  train("constant", {}, {});
  const Arguments divided = {"--nproc", "3", "--set", "shard_optimizer=true"};
  train_half("three_to_one", divided);
  train_rest("three_to_one", {});
  require_same_losses(setting.run("constant"), setting.run("three_to_one"));
  train_half("one_to_three", {});
  train_rest("one_to_three", divided);
  require_same_losses(setting.run("constant"), setting.run("one_to_three"));
  train_half("two_to_three", {"--nproc", "2"});
  train_rest("two_to_three", divided);
  require_same_losses(setting.run("constant"), setting.run("two_to_three"));
}

TEST_CASE("ranks join by torchrun's and by Slurm's variables", "[apps][distributed]") {
  const DistributedSetting setting;
  setting.require_finished("one", {});
  const auto train_two = [&](const std::string& name, const std::function<Arguments(int)>& variables) {
    std::vector<std::unique_ptr<Command>> ranks;
    for (int rank = 0; rank < 2; ++rank) ranks.push_back(setting.start_rank(name, {}, variables(rank)));
    for (const auto& rank : ranks) {
      const CommandResult result = rank->wait();
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      CHECK(result.out.empty() == (rank != ranks.front()));  // rank 0 alone speaks
    }
    require_same_losses(setting.run("one"), setting.run(name));
  };
  const int port = free_port();
  train_two("torchrun", [&](int rank) { return torchrun_variables(rank, 2, port); });
  const int other = free_port();
  train_two("slurm", [&](int rank) {
    return Arguments{fmt::format("SLURM_PROCID={}", rank), fmt::format("SLURM_LOCALID={}", rank), "SLURM_NTASKS=2",
                     "SLURM_JOB_NODELIST=localhost", fmt::format("MASTER_PORT={}", other)};
  });
}

TEST_CASE("ranks that were started differently say so", "[apps][distributed]") {
  const DistributedSetting setting;
  const int port = free_port();
  auto first = setting.start_rank("run", {}, torchrun_variables(0, 2, port));
  auto second = setting.start_rank("run", {"--set", "learning_rate=0.5"}, torchrun_variables(1, 2, port));
  for (Command* rank : {first.get(), second.get()}) {
    const CommandResult result = rank->wait();
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains("rank 1 differs from rank 0 in its configuration: training.learning_rate 0.5, "
                                    "expected 0.003"));
  }
  CHECK_FALSE(std::filesystem::exists(setting.run("run")));
}

TEST_CASE("ranks with other validation data, or another checkpoint of the same step, say so", "[apps][distributed]") {
  const DistributedSetting setting;
  const std::filesystem::path other = make_tiny_data(setting.folder.path() / "other");
  write_tiny_split(other / "val_000.bin", 700, 3);
  const auto require_difference = [&](const char* what, const Arguments& common, const Arguments& second) {
    const int port = free_port();
    Arguments more = common;
    more.insert(more.end(), second.begin(), second.end());
    auto zero = setting.start_rank("run", common, torchrun_variables(0, 2, port));
    auto one = setting.start_rank("elsewhere", more, torchrun_variables(1, 2, port));
    for (Command* rank : {zero.get(), one.get()}) {
      const CommandResult result = rank->wait();
      CHECK(result.exit_code == 1);
      CHECK_THAT(result.err, Contains(fmt::format("rank 1 differs from rank 0 in its {}", what)));
    }
  };
  require_difference("validation data", {}, {"--set", "data_dir=" + other.string()});

  // Each rank has a disk of its own, with a run of its own.
  const Arguments first_half = {"--set", "max_steps=10", "--set", "lr_decay_style=constant"};
  std::vector<std::filesystem::path> disks;
  for (const char* rate : {"3e-3", "1e-2"}) {
    disks.push_back(setting.folder.path() / fmt::format("disk{}", disks.size()));
    std::filesystem::create_directory(disks.back());
    Arguments half = first_half;
    half.insert(half.end(), {"--set", std::string("learning_rate=") + rate});
    setting.require_finished(fmt::format("disk{}/run", disks.size() - 1), half);
  }
  const int port = free_port();
  std::vector<std::unique_ptr<Command>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    const Arguments in_disk = {
        "-C",  disks[rank].string(), cli().string(), "train", setting.config.string(), "--output",
        "run", "--resume",           "--threads",    "1"};
    ranks.push_back(std::make_unique<Command>(
        CommandLine{"/usr/bin/env", in_disk, disks[rank], torchrun_variables(rank, 2, port)}));
  }
  for (const auto& rank : ranks) {
    const CommandResult result = rank->wait();
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains("rank 1 differs from rank 0 in its checkpoint to start from"));
  }
}

TEST_CASE("a port in use, a master out of reach and a rank that does not come are named", "[apps][distributed]") {
  const DistributedSetting setting;
  const Arguments soon = {"--set", "timeout=3"};
  const int port = free_port();
  const auto variables = torchrun_variables(0, 2, port);
  auto first = setting.start_rank("a", soon, variables);
  std::this_thread::sleep_for(1500ms);  // by now it holds the port, and waits for rank 1
  auto second = setting.start_rank("b", soon, variables);
  const CommandResult in_use = second->wait(), alone = first->wait();
  CHECK(in_use.exit_code == 1);
  CHECK_THAT(in_use.err, Contains(fmt::format("127.0.0.1:{}: the port is in use", port)));
  CHECK(alone.exit_code == 1);
  CHECK_THAT(alone.err, Contains("rank 1 of 2 did not join within 3 s"));

  const CommandResult lost = setting.start_rank("c", soon, torchrun_variables(1, 2, free_port()))->wait();
  CHECK(lost.exit_code == 1);
  CHECK_THAT(lost.err, Contains("rank 0 cannot be reached there within 3 s"));

  const CommandResult twice = setting.start_rank("d", {"--nproc", "2"}, variables)->wait();
  CHECK(twice.exit_code == 2);
  CHECK_THAT(twice.err, Contains("torchrun has started the ranks already"));
}

TEST_CASE("kill -9 of a rank ends the run with its name", "[apps][distributed]") {
  const DistributedSetting setting;
  for (const int killed : {0, 1}) {
    std::filesystem::remove_all(setting.run("endless"));
    TrainingRanks training(setting);
    kill(training.ranks.at(killed), SIGKILL);
    const CommandResult result = training.end(15s);
    INFO(result.err);
    CHECK(result.exit_code == 1);
    const std::string ended = fmt::format("rank {} was ended by signal 9 (Killed)", killed);
    CHECK_THAT(result.err, Contains("satformer: error: " + ended));
    CHECK_THAT(result.err, Contains(fmt::format("satformer: error: rank {}: {}, while this rank ", 1 - killed, ended)));
  }
}

TEST_CASE("a stopped rank ends the run with its name", "[apps][distributed]") {
  const DistributedSetting setting;
  TrainingRanks training(setting);
  kill(training.ranks.at(1), SIGSTOP);
  const CommandResult result = training.end(20s);
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("satformer: error: rank 0: rank 1 has died or hangs") &&
                             Contains("waited for the all-reduce of"));
}

TEST_CASE("no rank outlives its launcher", "[apps][distributed]") {
  const DistributedSetting setting;
  TrainingRanks training(setting);
  training.launcher.send(SIGKILL);
  training.end(5s);
}

TEST_CASE("a signal to the launcher stops all ranks after the same step, to be continued", "[apps][distributed]") {
  const DistributedSetting setting;
  TrainingRanks training(setting);
  training.launcher.send(SIGTERM);
  const CommandResult result = training.end(20s);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, Contains("--nproc 2 --resume"));
  const auto steps = lines_with(setting.run("endless"), "loss");
  const auto newest = checkpoint::list(setting.run("endless")).back();
  CHECK(checkpoint::load_trainer_state(newest).step == steps.back()["step"].get<std::int64_t>());
  setting.require_finished("endless",
                           {"--nproc", "2", "--resume", "--set", "max_steps=" + steps.back()["step"].dump()});
}

TEST_CASE("a full disk ends all ranks, and the checkpoints before it are whole", "[apps][distributed]") {
  const DistributedSetting setting;
  const std::filesystem::path disk = setting.run("disk");
  std::filesystem::create_directory(disk);
  // A file system of its own, in a mount namespace that ends with the shell.
  const std::string mount = fmt::format("mount -t tmpfs -o size=1200k none '{}'", disk.string());
  const auto in_namespace = [&](const std::string& script) {
    return Command(CommandLine{"/usr/bin/unshare",
                               {"--mount", "/bin/sh", "-c", mount + " && " + script},
                               setting.folder.path()})
        .wait();
  };
  if (in_namespace("true").exit_code != 0) {
    WARN("not run: this user may not mount a file system");
    return;
  }
  const CommandResult result = in_namespace(fmt::format(
      "{0} train {1} --output {2}/run --threads 1 --nproc 2 --set timeout=10 --set max_steps=1000; echo code $?; "
      "{0} eval {2}/run --data {3} --threads 1; echo code $?",
      cli().string(), setting.config.string(), disk.string(), setting.data.string()));
  INFO(result.out << result.err);
  CHECK_THAT(result.out, Contains("code 1\n") && Contains("val split: loss") && Contains("code 0\n"));
  CHECK_THAT(result.err, Contains("satformer: error: rank 0: ") && Contains("No space left on device") &&
                             Contains("satformer: error: rank 1: rank 0 has failed: "));
}
