// Training and evaluation through the executable: results, signals, and kills at any moment.
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/io/files.h"
#include "tests/apps/child_process.h"
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

struct Setting {
  TemporaryFolder folder;
  std::filesystem::path data = make_tiny_data(folder.path() / "data");
  std::filesystem::path config = folder.path() / "tiny.json";

  Setting() { std::ofstream(config) << tiny_config_text(data); }

  // satformer train CONFIG --output NAME --threads 1 ...
  std::vector<std::string> train(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"train", config.string(), "--output", run(name).string(), "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::filesystem::path run(const std::string& name) const { return folder.path() / name; }
};

nlohmann::json read_json(const std::filesystem::path& path) { return nlohmann::json::parse(read_file(path)); }

std::string metrics_without_times(const std::filesystem::path& run) {
  std::string text;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    object.erase("seconds");
    object.erase("tokens_per_second");
    text += object.dump() + "\n";
  }
  return text;
}

nlohmann::json trainer_state_without_config(const std::filesystem::path& checkpoint) {
  nlohmann::json state = read_json(checkpoint / "trainer.json");
  state.erase("config");
  return state;
}

void require_same_run(const std::filesystem::path& a, const std::filesystem::path& b, const std::string& step) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "config.json"}) {
    INFO(file);
    REQUIRE(read_file(a / "checkpoints" / step / file) == read_file(b / "checkpoints" / step / file));
  }
  REQUIRE(trainer_state_without_config(a / "checkpoints" / step) ==
          trainer_state_without_config(b / "checkpoints" / step));
  REQUIRE(metrics_without_times(a) == metrics_without_times(b));
}

// Waits until the run has written so many lines of metrics.
void wait_for_lines(Command& command, const std::filesystem::path& run, std::ptrdiff_t lines) {
  const auto deadline = Clock::now() + 60s;
  while (command.running() && Clock::now() < deadline) {
    if (std::filesystem::exists(run / "metrics.jsonl")) {
      const std::string text = read_file(run / "metrics.jsonl");
      if (std::count(text.begin(), text.end(), '\n') >= lines) return;
    }
    std::this_thread::sleep_for(2ms);
  }
}

std::filesystem::path newest_checkpoint(const std::filesystem::path& run) {
  const auto checkpoints = checkpoint::list(run);
  return checkpoints.empty() ? std::filesystem::path() : checkpoints.back();
}

}  // namespace

TEST_CASE("train and eval write their results", "[apps][train]") {
  const Setting setting;
  const auto json = setting.folder.path() / "result.json";
  CommandResult result = run_command(setting.train("run", {"--json", json.string()}), setting.folder.path());
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.err, Contains("weight decay 0.1:") && Contains("saved "));
  const nlohmann::json trained = read_json(json);
  CHECK(trained["steps"] == 20);
  CHECK(trained["tokens"] == 20 * 8 * 16);
  CHECK(trained["skipped_steps"] == 0);
  for (const char* key : {"train_loss", "val_loss", "val_perplexity", "tokens_per_second", "parameters"}) {
    CHECK(trained[key].get<double>() > 0.0);
  }
  CHECK(std::filesystem::exists(trained["checkpoint"].get<std::string>()));

  // All 499 targets, where the validation stopped at 300; a run's folder stands for its newest checkpoint.
  const auto eval = [&](const std::string& path, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"eval",   path,          "--data",  setting.data.string(),
                                          "--json", json.string(), "--dtype", "float32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult evaluated = run_command(arguments, setting.folder.path());
    INFO(evaluated.err);
    REQUIRE(evaluated.exit_code == 0);
    return read_json(json);
  };
  const nlohmann::json all = eval(setting.run("run").string(), {});
  CHECK(all["tokens"] == 499);
  CHECK(all["perplexity"].get<double>() == Approx(std::exp(all["loss"].get<double>())));
  CHECK(all["bits_per_byte"].is_null());  // neither dataset.json nor a tokenizer
  const nlohmann::json single = eval(trained["checkpoint"], {"--batch", "1"});
  CHECK(single["tokens"] == 499);
  CHECK(single["loss"].get<double>() == Approx(all["loss"].get<double>()).epsilon(1e-6));
  CHECK(eval(trained["checkpoint"], {"--seq-length", "64"})["tokens"] == 499);
  CHECK(eval(trained["checkpoint"], {"--split", "train"})["tokens"] == 4000);
}

TEST_CASE("a validation split of less than one window fails before training", "[apps][train]") {
  const Setting setting;
  write_tiny_split(setting.data / "val_000.bin", 16, 1);
  const CommandResult result = run_command(setting.train("run"), setting.folder.path());
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("has 16 tokens; one window of seq_length 16 needs 17"));
  CHECK_FALSE(std::filesystem::exists(setting.run("run")));
}

TEST_CASE("SIGTERM and SIGINT save, say how to go on, and exit 0", "[apps][train]") {
  const Setting setting;
  const std::vector<std::string> longer = {"--set", "max_steps=40", "--set", "checkpoint_interval=1000"};
  REQUIRE(run_command(setting.train("straight", longer), setting.folder.path()).exit_code == 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    auto arguments = setting.train("stopped", longer);
    arguments.push_back("--resume");
    Command command(arguments, setting.folder.path());
    wait_for_lines(command, setting.run("stopped"), signal == SIGTERM ? 5 : 20);
    command.send(signal);
    const CommandResult result = command.wait();
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.err, Contains("--resume") || Contains("step 40/40"));
  }
  auto arguments = setting.train("stopped", longer);
  arguments.push_back("--resume");
  REQUIRE(run_command(arguments, setting.folder.path()).exit_code == 0);
  require_same_run(setting.run("straight"), setting.run("stopped"), "step_00000040");
}

TEST_CASE("kill -9 at any moment, also while saving, loses no more than the steps since the last checkpoint",
          "[apps][train]") {
  const Setting setting;
  const std::vector<std::string> rarely = {"--set", "max_steps=40", "--set", "checkpoint_interval=1000"};
  const std::vector<std::string> often = {"--set", "max_steps=40", "--set",   "checkpoint_interval=1",
                                          "--set", "keep_last=3",  "--resume"};
  REQUIRE(run_command(setting.train("straight", rarely), setting.folder.path()).exit_code == 0);

  std::mt19937 random(20240607);  // NOLINT: the same moments every time
  std::uniform_real_distribution<double> seconds(0.0, 0.05);
  const auto run = setting.run("killed");
  const auto deadline = Clock::now() + 30s;
  int kills = 0;
  bool finished = false;
  while (!finished && Clock::now() < deadline) {
    const auto before = newest_checkpoint(run);
    Command command(setting.train("killed", often), setting.folder.path());
    // Mostly after the next checkpoint, so that the run gets on; at times while it starts.
    const bool early = kills % 5 == 4;
    while (!early && command.running() && newest_checkpoint(run) == before) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds(random)));
    finished = !command.running();
    command.send(SIGKILL);
    const CommandResult result = command.wait();
    INFO(result.err);
    if (finished) REQUIRE(result.exit_code == 0);
    kills += finished ? 0 : 1;
    // Every checkpoint that has its name is whole.
    for (const auto& checkpoint : checkpoint::list(run)) CHECK_NOTHROW(checkpoint::load_model(checkpoint));
  }
  CHECK(kills > 0);
  if (!finished) {
    std::vector<std::string> rest = rarely;
    rest.push_back("--resume");
    const CommandResult result = run_command(setting.train("killed", rest), setting.folder.path());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  require_same_run(setting.run("straight"), run, "step_00000040");
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints")) {
    CHECK(entry.path().filename().string().front() != '.');  // nothing half-written stays
  }
}
