// satformer gates through the executable: files, refusals, memory.
#include <fstream>
#include <nlohmann/json.hpp>

#include "satformer/io/files.h"
#include "tests/apps/child_process.h"
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

// A run of 20 steps with checkpoints at 5, 10, 15 and 20, made once for a test.
struct GatesRun {
  TemporaryFolder folder;
  std::filesystem::path data = make_tiny_data(folder.path() / "data");
  std::filesystem::path run = folder.path() / "run";

  GatesRun() {
    std::ofstream(folder.path() / "tiny.json") << tiny_config_text(data);
    const CommandResult result =
        call({"train", (folder.path() / "tiny.json").string(), "--output", run.string(), "--threads", "1"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  CommandResult call(const std::vector<std::string>& arguments) const { return run_command(arguments, folder.path()); }
  CommandResult gates(const std::string& output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"gates", run.string(), "--output", path(output).string(), "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return call(arguments);
  }
  std::filesystem::path path(const std::string& name) const { return folder.path() / name; }
  nlohmann::json document(const std::string& output) const {
    return nlohmann::json::parse(read_file(path(output) / "gates.json"));
  }
};

}  // namespace

TEST_CASE("gates writes its report and says what it found", "[apps][gates]") {
  const GatesRun run;
  const CommandResult result = run.gates("report", {"--every-checkpoint", "--json", run.path("out.json").string()});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("of the gates are exactly zero") && Contains("before training") &&
                             Contains("The gates are largest in layer") && Contains("report.html"));
  for (const char* name : {"gates.json", "heads.csv", "layers.csv", "histogram.csv", "positions.csv", "tokens.csv",
                           "dynamics.csv", "report.html"}) {
    CHECK(std::filesystem::file_size(run.path("report") / name) > 0);
  }
  const nlohmann::json document = run.document("report");
  CHECK(document == nlohmann::json::parse(read_file(run.path("out.json"))));
  CHECK(document["schema"] == "satformer.gates/1");
  CHECK_THAT(result.out, Contains(document["findings"][1].get<std::string>()));
  CHECK(document["checkpoint"]["step"] == 20);
  CHECK(document["data"]["tokens"] == 499);
  CHECK(document["initialization"]["seed"] == 5);
  CHECK(document["initialization"]["seed_known"] == true);
  CHECK(document["initialization"]["gates"]["layers"] != document["gates"]["layers"]);
  REQUIRE(document["dynamics"].size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(document["dynamics"][i]["step"] == 5 * i);
  CHECK(document["dynamics"][0]["gates"]["heads"] == document["initialization"]["gates"]["heads"]);
  CHECK(document["dynamics"][4]["gates"]["heads"] == document["gates"]["heads"]);
  CHECK(document["dynamics"][2]["gates"]["heads"] != document["gates"]["heads"]);
}

TEST_CASE("the model before training is the one that the run began with", "[apps][gates]") {
  const GatesRun run;
  std::ofstream(run.path("still.json")) << tiny_config_text(run.data);
  REQUIRE(run.call({"train", run.path("still.json").string(), "--output", run.path("still").string(), "--threads", "1",
                    "--set", "learning_rate=0", "--set", "min_lr=0", "--set", "max_steps=1"})
              .exit_code == 0);
  const CommandResult result =
      run.call({"gates", run.path("still").string(), "--output", run.path("report").string(), "--threads", "1"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json document = run.document("report");
  CHECK(document["gates"]["heads"] == document["initialization"]["gates"]["heads"]);
}

TEST_CASE("gates of a text, with classes", "[apps][gates]") {
  const TemporaryFolder folder;
  const std::string lines = made_up_lines(300);
  write_text(folder.path() / "train.txt", lines);
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  REQUIRE(run_command({"prepare", "--input", at("train.txt"), "--document-per", "line", "--output", at("data"),
                       "--vocab-size", "300", "--val-fraction", "0.2"},
                      folder.path())
              .exit_code == 0);
  std::string config = tiny_config_text(folder.path() / "data");
  config.replace(config.find("\"vocab_size\": 61"), 16, "\"vocab_size\": 300");
  write_text(folder.path() / "tiny.json", config);
  REQUIRE(run_command({"train", at("tiny.json"), "--output", at("run"), "--threads", "1", "--set", "max_steps=2"},
                      folder.path())
              .exit_code == 0);
  write_text(folder.path() / "text.txt", "The karo sul, and 12 of the ten.\n" + made_up_lines(40, 9));
  const CommandResult result = run_command(
      {"gates", at("run"), "--text", at("text.txt"), "--output", at("report"), "--threads", "1"}, folder.path());
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("semantic"));
  const nlohmann::json document = nlohmann::json::parse(read_file(folder.path() / "report/gates.json"));
  const nlohmann::json& text = document["gates"]["text"];
  std::string rebuilt;
  for (const nlohmann::json& piece : text["pieces"]) rebuilt += piece.get<std::string>();
  CHECK_THAT(rebuilt, Contains("The karo sul, and 12 of the ten."));
  CHECK(text["pieces"].size() == text["classes"].size());
  std::int64_t tokens = 0, functional = 0;
  for (const nlohmann::json& item : document["gates"]["categories"]["classes"]) {
    tokens += item["tokens"].get<std::int64_t>();
    if (item["group"] == "functional") functional += item["tokens"].get<std::int64_t>();
  }
  CHECK(tokens == document["data"]["tokens"].get<std::int64_t>());
  CHECK(functional >= 4);  // The, and, of, the
  CHECK(std::filesystem::exists(folder.path() / "report/categories.csv"));

  write_text(folder.path() / "empty.txt", "");
  const CommandResult empty = run_command(
      {"gates", at("run"), "--text", at("empty.txt"), "--output", at("none"), "--threads", "1"}, folder.path());
  CHECK(empty.exit_code == 1);
  CHECK_THAT(empty.err, Contains("empty.txt: holds no text"));
  write_text(folder.path() / "tiny.txt", "ka");  // shorter than a window
  CHECK(run_command({"gates", at("run"), "--text", at("tiny.txt"), "--output", at("short"), "--threads", "1"},
                    folder.path())
            .exit_code == 0);
}

TEST_CASE("gates refuses before it works", "[apps][gates]") {
  const GatesRun run;
  write_text(run.path("file"), "x");
  std::filesystem::create_directory(run.path("full"));
  write_text(run.path("full") / "mine.txt", "x");
  write_text(run.path("bad.json"), "{\"name\": \"x\"}");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--output", run.path("file").string()}, "is no folder"},
      {{"--output", run.path("full").string()}, "is not empty"},
      {{"--output", run.path("full").string(), "--overwrite"}, "did not write it"},
      {{"--output", run.path("o").string(), "--text", run.path("file").string()}, "--text needs a tokenizer"},
      {{"--output", run.path("o").string(), "--tokenizer", run.path("file").string()}, "no SentencePiece model"},
      {{"--output", run.path("o").string(), "--data", run.path("none").string()}, "none"},
      {{"--output", run.path("o").string(), "--seq-length", "1000"}, "the split has 500 tokens"},
  };
  for (const auto& [more, words] : cases) {
    std::vector<std::string> arguments{"gates", run.run.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run.call(arguments);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains(words));
  }
  CHECK(read_text(run.path("full") / "mine.txt") == "x");
  CHECK_FALSE(std::filesystem::exists(run.path("o")));
  REQUIRE(run.gates("report", {"--max-tokens", "64"}).exit_code == 0);
  CHECK(run.document("report")["data"]["tokens"] == 64);
  CHECK(run.gates("report").exit_code == 1);
  CHECK(run.gates("report", {"--overwrite", "--no-initialization"}).exit_code == 0);
  CHECK(run.document("report")["data"]["tokens"] == 499);
  CHECK(run.document("report")["initialization"].is_null());
}

TEST_CASE("the memory of gates does not grow with the data", "[apps][gates]") {
  const GatesRun run;
  for (const auto& [name, tokens] : {std::pair{"short", 20'000}, std::pair{"long", 400'000}}) {
    std::filesystem::create_directory(run.path(name));
    write_tiny_split(run.path(name) / "val_000.bin", tokens, 3);
  }
  const auto peak = [&](const std::string& name) {
    const CommandResult result =
        run.gates(name + "_report", {"--data", run.path(name).string(), "--no-initialization", "--seq-length", "64"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.peak_memory_kib;
  };
  const long small = peak("short"), large = peak("long");
  // 380,000 more tokens with 4 gates of 4 bytes alone would be 5.8 MiB; the shard itself is mapped: 0.7 MiB.
  if (!kSanitized) CHECK(large - small < 4096);
}
