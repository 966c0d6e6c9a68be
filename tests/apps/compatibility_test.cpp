// Checkpoints written by an earlier satformer load, and their runs go on as that program's did.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "satformer/io/files.h"
#include "satformer/models/architectures.h"
#include "tests/apps/child_process.h"
#include "tests/catch.h"
#include "tests/paths.h"
#include "tests/support/folders.h"

namespace satformer::testing {
namespace {

namespace fs = std::filesystem;

// Written at commit 182efc2 on an AVX2 processor: eight steps of each architecture, the checkpoint after the fourth.
fs::path old_runs() { return test_data_dir() / "runs_of_182efc2"; }

struct Losses {
  std::map<std::int64_t, double> train, validation;
};

Losses read_losses(const fs::path& metrics) {
  Losses losses;
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    const auto values = nlohmann::json::parse(line);
    const bool validation = values.contains("val_loss");
    (validation ? losses.validation : losses.train)[values.at("step")] = values.at(validation ? "val_loss" : "loss");
  }
  return losses;
}

// Largest relative difference of two runs' losses after `step`.
double difference(const std::map<std::int64_t, double>& ours, const std::map<std::int64_t, double>& theirs,
                  std::int64_t step) {
  double largest = 0.0;
  for (const auto& [at, loss] : theirs) {
    if (at > step) largest = std::max(largest, std::abs(ours.at(at) - loss) / loss);
  }
  return largest;
}

}  // namespace

TEST_CASE("runs of an earlier satformer go on with its losses", "[apps]") {
  const TemporaryFolder folder;
  for (const models::Architecture& architecture : models::architectures()) {
    const fs::path old = old_runs() / architecture.name, run = folder / architecture.name;
    INFO(architecture.name);
    fs::create_directory(run);
    fs::copy(old / "checkpoints", run / "checkpoints", fs::copy_options::recursive);
    const CommandResult result =
        run_command({"train", (old_runs() / "config.json").string(), "--set", "model.architecture=" + architecture.name,
                     "--set", "data.data_dir=" + (old_runs() / "data").string(), "--output", run.string(), "--resume"},
                    folder.path());
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const Losses expected = read_losses(old / "expected.jsonl"), losses = read_losses(run / "metrics.jsonl");
    REQUIRE(losses.train.size() == 4);
    REQUIRE(losses.validation.size() == 1);
    // Other processors round otherwise: 1e-7 a sum, which four steps of Adam enlarge where a gradient is near 0.
    CHECK(difference(losses.train, expected.train, 4) < 2e-5);
    CHECK(difference(losses.validation, expected.validation, 4) < 2e-5);
  }
}

}  // namespace satformer::testing
