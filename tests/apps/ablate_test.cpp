// satformer ablate through the executable: files, calibration, refusals.
#include <fstream>
#include <nlohmann/json.hpp>

#include "satformer/io/files.h"
#include "tests/apps/child_process.h"
#include "tests/satformer/data/support.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

struct AblateRun {
  TemporaryFolder folder;
  std::filesystem::path data = make_tiny_data(folder.path() / "data");

  explicit AblateRun(const std::string& architecture = "satformer") {
    write_text(path("tiny.json"), tiny_config_text(data));
    const CommandResult result = run_command({"train", path("tiny.json"), "--output", path("run"), "--threads", "1",
                                              "--set", "model.architecture=\"" + architecture + "\""},
                                             folder.path());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }
  CommandResult ablate(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"ablate", path("run"), "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments, folder.path());
  }
  json document(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"--json", path("out.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = ablate(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(read_file(path("out.json")));
  }
};

}  // namespace

TEST_CASE("ablate writes its files and prints a ranking", "[apps][ablate]") {
  const AblateRun run;
  const CommandResult result =
      run.ablate({"--mode", "zero", "--scope", "head", "--output", run.path("a"), "--json", run.path("out.json")});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("intact: loss") && Contains("head 1") && Contains("rank"));
  const json document = json::parse(read_file(run.path("a/ablation.json")));
  CHECK(document == json::parse(read_file(run.path("out.json"))));
  CHECK(document["schema"] == "satformer.ablation/1");
  CHECK(document["mode"] == "zero");
  CHECK(document["scope"] == "head");
  CHECK_THAT(result.out, Contains(document["finding"].get<std::string>()));
  CHECK(document["calibration"].is_null());
  CHECK(document["data"]["tokens"] == 499);
  REQUIRE(document["ablations"].size() == 4);
  const std::string table = read_file(run.path("a/ablation.csv"));
  CHECK(table.starts_with("rank,layer,head,category,loss,perplexity,change,low,high\r\n1,"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 5);

  const json evaluation = [&] {
    REQUIRE(run_command({"eval", run.path("run"), "--json", run.path("eval.json"), "--threads", "1"}, run.folder.path())
                .exit_code == 0);
    return json::parse(read_file(run.path("eval.json")));
  }();
  CHECK(document["intact"]["loss"].get<double>() == Approx(evaluation["loss"].get<double>()).epsilon(1e-6));

  json naive = run.document({"--mode", "zero", "--scope", "head", "--no-reuse"});
  CHECK(naive["ablations"] == document["ablations"]);
  CHECK(naive["reuse"] == false);

  CHECK(run.ablate({"--mode", "zero", "--output", run.path("a")}).exit_code == 1);
  CHECK(run.ablate({"--mode", "scale=0.5", "--output", run.path("a"), "--overwrite"}).exit_code == 0);
  CHECK(json::parse(read_file(run.path("a/ablation.json")))["mode"] == "scale=0.5");
}

TEST_CASE("ablate takes its means over the other split and says so", "[apps][ablate]") {
  const AblateRun run;
  const json mean = run.document({"--mode", "mean", "--calibration-tokens", "64"});
  CHECK(mean["calibration"]["split"] == "train");
  CHECK(mean["calibration"]["tokens"] == 64);
  CHECK(mean["data"]["split"] == "val");
  const json other = run.document({"--mode", "token-mean", "--split", "train", "--max-tokens", "128"});
  CHECK(other["calibration"]["split"] == "val");
  CHECK(other["calibration"]["tokens"] == 499);
  CHECK(other["data"]["tokens"] == 128);
  std::filesystem::remove(run.data / "train_000.bin");
  const CommandResult result = run.ablate({"--mode", "mean"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("train"));
  CHECK(run.ablate({"--mode", "shuffle"}).exit_code == 0);
}

TEST_CASE("ablate refuses what has no gates", "[apps][ablate]") {
  const AblateRun plain("transformer");
  const CommandResult result = plain.ablate({"--mode", "zero", "--output", plain.path("o")});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("in no layer"));
  CHECK_FALSE(std::filesystem::exists(plain.path("o")));
  const AblateRun fixed("resformer");
  CHECK(fixed.ablate({"--mode", "mean", "--scope", "layer"}).exit_code == 0);
  const CommandResult shuffled = fixed.ablate({"--mode", "shuffle"});
  CHECK(shuffled.exit_code == 1);
  CHECK_THAT(shuffled.err, Contains("the same for every token"));
  const CommandResult category = fixed.ablate({"--mode", "zero", "--scope", "category"});
  CHECK(category.exit_code == 1);
  CHECK_THAT(category.err, Contains("tokenizer"));
}
