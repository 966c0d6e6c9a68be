// satformer export, through the executable.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "satformer/core/files.h"
#include "satformer/exchange/torchscript.h"
#include "satformer/train/checkpoint.h"
#include "tests/apps/child_process.h"
#include "tests/satformer/models/model_testing.h"
#include "tests/satformer/train/scratch_folder.h"
#include "tests/satformer/train/tiny_run.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::testing;

}  // namespace

TEST_CASE("export writes a run's newest checkpoint as TorchScript", "[apps]") {
  const ScratchFolder folder;
  const std::filesystem::path data = train::make_tiny_data(folder.path() / "data");
  const std::string config = (folder.path() / "tiny.json").string(), run = (folder.path() / "run").string();
  const std::string output = (folder.path() / "model.pt").string(), json = (folder.path() / "export.json").string();
  std::ofstream(config) << train::tiny_config_text(data);
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

  const auto model = train::load_model(run);
  exchange::ExtraFiles extra{{"config.json", ""}};
  torch::jit::Module module = exchange::load_torchscript(output, at::kCPU, &extra);
  CHECK(extra.at("config.json") == read_file(std::filesystem::path(run) / "checkpoints/step_00000006/config.json"));
  const at::Tensor ids = at::arange(24, at::kLong).view({2, 12});
  CHECK(exchange::torchscript_difference(*model, module, ids) < 1e-6);
}
