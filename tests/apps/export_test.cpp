// satformer export, through the executable.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/exchange/torchscript.h"
#include "satformer/io/files.h"
#include "tests/apps/child_process.h"
#include "tests/satformer/models/model_testing.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::testing;

}  // namespace

TEST_CASE("export writes a run's newest checkpoint as TorchScript", "[apps]") {
  const TemporaryFolder folder;
  const std::filesystem::path data = make_tiny_data(folder.path() / "data");
  const std::string config = (folder.path() / "tiny.json").string(), run = (folder.path() / "run").string();
  const std::string output = (folder.path() / "model.pt").string(), json = (folder.path() / "export.json").string();
  std::ofstream(config) << tiny_config_text(data);
  REQUIRE(run_command({"train", config, "--output", run, "--threads", "1", "--set", "max_steps=6"}, folder.path())
              .exit_code == 0);
  const CommandResult result =
      run_command({"export", run, "--format", "torchscript", "--output", output, "--json", json}, folder.path());
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out,
             Catch::Contains("satformer, ") && Catch::Contains("methods forward, step, gates, set_gate_intervention"));
  const auto report = nlohmann::json::parse(read_file(json));
  CHECK(report["checkpoint"] == run + "/checkpoints/step_00000006");
  CHECK(report["difference"].get<double>() < 1e-6);

  const auto model = checkpoint::load_model(run);
  exchange::ExtraFiles extra{{"config.json", ""}};
  torch::jit::Module module = exchange::load_torchscript(output, at::kCPU, &extra);
  CHECK(extra.at("config.json") == read_file(std::filesystem::path(run) / "checkpoints/step_00000006/config.json"));
  const at::Tensor ids = at::arange(24, at::kLong).view({2, 12});
  CHECK(exchange::torchscript_difference(*model, module, ids) < 1e-6);

  // Nothing is lost to a wrong path.
  const std::string weights = run + "/checkpoints/step_00000006/model.safetensors", before = read_file(weights);
  const std::string link = (folder.path() / "link.pt").string(), fresh = (folder.path() / "fresh.pt").string();
  std::filesystem::create_symlink(weights, link);
  const auto export_to = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"export", run, "--format", "torchscript", "--output"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments, folder.path());
  };
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
      {{output}, "exists"},
      {{weights, "--overwrite"}, "lies in a checkpoint"},
      {{link, "--overwrite"}, "lies in a checkpoint"},
      {{folder.path().string(), "--overwrite"}, "is a folder"},
      {{fresh, "--json", fresh}, "is --output as well"},
  };
  for (const auto& [more, words] : refused) {
    const CommandResult refusal = export_to(more);
    CHECK(refusal.exit_code == 1);
    CHECK_THAT(refusal.err, Catch::Contains(words));
  }
  CHECK(read_file(weights) == before);
  CHECK_FALSE(std::filesystem::exists(fresh));
  CHECK(export_to({output, "--overwrite"}).exit_code == 0);
}
