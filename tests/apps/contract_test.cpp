// The command line's contract: what is printed where, and how a run ends.
#include <algorithm>

#include "tests/apps/child_process.h"
#include "tests/support/folders.h"

// Torch-free, but kept in the order that catch.h asks for.
#include "tests/catch.h"

namespace {

using namespace satformer::testing;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("help and version go to standard output and exit 0", "[apps]") {
  const TemporaryFolder folder;
  CommandResult result = run_command({"--help"}, folder.path());
  CHECK(result.exit_code == 0);
  for (const char* command : {"prepare", "train", "eval", "gates", "ablate", "bench", "export", "verify"}) {
    CHECK_THAT(result.out, Contains(command));
    const CommandResult help = run_command({command, "--help"}, folder.path());
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, Contains("--json"));
    CHECK(help.err.empty());
  }
  result = run_command({"--version"}, folder.path());
  CHECK(result.exit_code == 0);
  for (const char* word : {"satformer", "LibTorch", "CUDA", "CPU"}) CHECK_THAT(result.out, Contains(word));
  result = run_command({"train", "--help-config"}, folder.path());
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("| `training.learning_rate` | 0.0003 |"));
}

TEST_CASE("wrong usage exits 2 and says so on standard error", "[apps]") {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"trian"},
      {"--nonsense"},
      {"train"},
      {"train", "config.json", "--nonsense"},
      {"train", "config.json", "--threads", "0"},
      {"train", "config.json", "--resume", "--resume-from", "x"},
      {"train", "config.json", "--json", "/no/such/folder/result.json"},
      {"eval"},
      {"train", "config.json", "--json", folder.path()},
      {"train", "config.json", "--set", "learning_rate"},
      {"train", "config.json", "--set", "=3"},
      {"prepare", "--input", "x", "--output", "y", "--seed", "-1"},
      {"prepare", "--input", "x", "--output", "y", "--vocab-size", "99999999999"},
      {"prepare", "--input", "x", "--output", "y", "--vocab-size", "0"},
      {"eval", "x", "--split", "test"},
      {"eval", "x", "--dtype", "int8"},
      {"export", "x", "--output", "y"},
      {"export", "x", "--format", "torchscript"},
      {"export", "x", "--format", "onnx", "--output", "y"},
      {"gates"},
      {"gates", "x"},
      {"gates", "x", "--output", "y", "--data", "d", "--text", "t"},
      {"gates", "x", "--output", "y", "--thresholds", "0.5,0.1"},
      {"gates", "x", "--output", "y", "--confidence", "1"},
      {"ablate"},
      {"ablate", "x"},
      {"ablate", "x", "--mode", "half"},
      {"ablate", "x", "--mode", "scale"},
      {"ablate", "x", "--mode", "scale="},
      {"ablate", "x", "--mode", "scale=inf"},
      {"ablate", "x", "--mode", "scale=1e300"},
      {"ablate", "x", "--mode", "zero", "--scope", "token"},
      {"ablate", "x", "--mode", "zero", "--resamples", "1"},
  };
  for (const auto& arguments : wrong) {
    const CommandResult result = run_command(arguments, folder.path());
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, StartsWith("satformer: error: "));
    CHECK(result.err.size() < 300);
  }
  CHECK_THAT(run_command({}, folder.path()).err,
             StartsWith("satformer: error: a command is required: prepare, train, "));
  CHECK_THAT(run_command({"trian"}, folder.path()).err,
             StartsWith("satformer: error: unknown command trian, expected one of prepare, train, "));
}

TEST_CASE("a failure exits 1 with one line", "[apps]") {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> failing = {
      {"train", "/no/such/config.json", "--output", (folder.path() / "run").string()},
      {"eval", "/no/such/checkpoint", "--data", folder.path().string()},
      {"eval", folder.path().string(), "--data", folder.path().string()},
      {"export", "/no/such/checkpoint", "--format", "torchscript", "--output", (folder.path() / "run").string()},
  };
  for (const auto& arguments : failing) {
    const CommandResult result = run_command(arguments, folder.path());
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, StartsWith("satformer: error: "));
    CHECK(lines(result.err) == 1);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "run"));
  }
}
