#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"

#include <ATen/ops/equal.h>

#include <fstream>

#include "satformer/checkpoint/manifest.h"
#include "satformer/checkpoint/parameters.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/runtime/safetensors.h"
#include "tests/catch.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

namespace {

using namespace satformer;
using namespace satformer::train;
using Catch::Matchers::Contains;

// A run of two steps with a checkpoint of each.
std::filesystem::path make_run(const testing::TemporaryFolder& folder, const std::vector<std::string>& overrides = {}) {
  const auto data = testing::make_tiny_data(folder.path() / "data");
  std::vector<std::string> all = {"max_steps=2", "checkpoint_interval=1", "logging.tensorboard=false"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const RunConfig config = testing::tiny_config(data, all);
  Trainer(config, testing::tiny_options(folder.path() / "run")).run();
  return folder.path() / "run";
}

std::string verify_message(const std::filesystem::path& checkpoint) {
  try {
    checkpoint::verify_manifest(checkpoint);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a checkpoint holds the promised files and loads", "[train][checkpoint]") {
  const testing::TemporaryFolder folder;
  const auto run = make_run(folder);
  const auto checkpoint = checkpoint::find(run);
  CHECK(checkpoint.filename() == "step_00000002");
  CHECK(checkpoint::find(checkpoint) == checkpoint);
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "trainer.json", "config.json", "manifest.json"}) {
    CHECK(std::filesystem::exists(checkpoint / name));
  }
  const auto model = checkpoint::load_model(run);
  CHECK_FALSE(model->is_training());
  const TensorMap stored = read_safetensors(checkpoint / "model.safetensors").tensors;
  CHECK(stored.count("model.embeddings.weight") == 1);
  CHECK(stored.count("lm_head.weight") == 0);  // tied: stored once
  const auto parameters = checkpoint::named_parameters(*model);
  CHECK(parameters.size() == stored.size());
  for (const auto& parameter : parameters) CHECK(at::equal(parameter.tensor, stored.at(parameter.name)));
  const checkpoint::TrainerState state = checkpoint::load_trainer_state(checkpoint);
  CHECK(state.step == 2);
  CHECK(state.samples == 16);
  CHECK(state.config["training"]["batch_size"] == 4);
  CHECK_THROWS_WITH(checkpoint::find(folder.path() / "data"), Contains("neither a checkpoint"));
  CHECK_THROWS_WITH(checkpoint::find(folder.path() / "absent"), Contains("no such folder"));
}

TEST_CASE("missing, cut and additional files of a checkpoint are named", "[train][checkpoint]") {
  const testing::TemporaryFolder folder;
  const auto checkpoint = checkpoint::find(make_run(folder));
  std::ofstream(checkpoint / "extra.txt") << "x";
  CHECK_THAT(verify_message(checkpoint), Contains("extra.txt: not listed"));
  std::filesystem::remove(checkpoint / "extra.txt");
  std::filesystem::resize_file(checkpoint / "optimizer.safetensors", 1000);
  CHECK_THAT(verify_message(checkpoint), Contains("optimizer.safetensors: 1000 bytes, expected"));
  std::filesystem::remove(checkpoint / "optimizer.safetensors");
  CHECK_THAT(verify_message(checkpoint), Contains("optimizer.safetensors: No such file"));
  std::filesystem::remove(checkpoint / "manifest.json");
  CHECK_THROWS_WITH(checkpoint::load_model(checkpoint), Contains("manifest.json"));
}

TEST_CASE("loading is strict about names, shapes and dtypes", "[train][checkpoint]") {
  const testing::TemporaryFolder folder;
  const auto checkpoint = checkpoint::find(make_run(folder));
  const auto rewrite = [&](const std::function<void(TensorMap&)>& change) {
    TensorMap tensors = read_safetensors(checkpoint / "model.safetensors").tensors;
    change(tensors);
    std::filesystem::remove(checkpoint / "model.safetensors");
    write_safetensors(checkpoint / "model.safetensors", tensors);
    checkpoint::write_manifest(checkpoint);
  };
  rewrite([](TensorMap& tensors) {
    tensors["surplus"] = tensors.at("model.norm.weight");
    tensors["model.norm.weight"] = tensors.at("model.norm.weight").to(at::kHalf);
    tensors.erase("model.layers.0.attn.q_proj.weight");
  });
  CHECK_THROWS_WITH(checkpoint::load_model(checkpoint),
                    Contains("model.safetensors: ") && Contains("model.layers.0.attn.q_proj.weight is missing") &&
                        Contains("model.norm.weight is Half [32], expected Float [32]") &&
                        Contains("surplus Float [32] is not expected"));
}

TEST_CASE("keep_last removes older checkpoints, never the newest", "[train][checkpoint]") {
  const testing::TemporaryFolder folder;
  const auto run = make_run(folder, {"max_steps=6", "keep_last=2"});
  const auto checkpoints = checkpoint::list(run);
  REQUIRE(checkpoints.size() == 2);
  CHECK(checkpoints[0].filename() == "step_00000005");
  CHECK(checkpoints[1].filename() == "step_00000006");
  // What kills leave in the middle of a removal, and of cutting metrics.jsonl.
  std::filesystem::create_directories(run / "checkpoints" / ".step_00000004.removed");
  std::ofstream(run / fmt::format(".metrics.jsonl.tmp-{}.0", getpid())) << "half a line";
  checkpoint::remove_stale(run);
  CHECK_FALSE(std::filesystem::exists(run / "checkpoints" / ".step_00000004.removed"));
  CHECK_FALSE(std::filesystem::exists(run / fmt::format(".metrics.jsonl.tmp-{}.0", getpid())));
  CHECK(checkpoint::list(run).size() == 2);
}

TEST_CASE("nothing of a model file is executed", "[train][checkpoint]") {
  const testing::TemporaryFolder folder;
  const auto checkpoint = checkpoint::find(make_run(folder));
  const auto trace = folder.path() / "executed";
  // A pickle, which torch.load would obey.
  const std::string pickle = "cos\nsystem\n(S'touch " + trace.string() + "'\ntR.";
  for (const char* name : {"model.safetensors", "config.json"}) {
    INFO(name);
    const std::string before = read_file(checkpoint / name);
    write_file_atomically(checkpoint / name, pickle);
    checkpoint::write_manifest(checkpoint);
    CHECK_THROWS_WITH(checkpoint::load_model(checkpoint), Contains(name));
    CHECK_FALSE(std::filesystem::exists(trace));
    write_file_atomically(checkpoint / name, before);
  }
  checkpoint::write_manifest(checkpoint);
  CHECK(checkpoint::load_model(checkpoint) != nullptr);
}

TEST_CASE("a manifest names files of its own folder alone", "[train][checkpoint]") {
  const auto with_name = [](const std::string& name) {
    return "{\n \"files\": {\n  \"" + name + "\": {\n   \"bytes\": 3,\n   \"crc32\": \"0000abcd\"\n  }\n }," +
           "\n \"format\": 1\n}\n";
  };
  const checkpoint::Manifest manifest = checkpoint::parse_manifest(with_name("config.json"), "m");
  CHECK(manifest.at("config.json").bytes == 3);
  CHECK(manifest.at("config.json").crc32 == 0xabcd);
  for (const char* name : {"../config.json", "/etc/passwd", ".", "..", "", "a/b", "manifest.json"}) {
    CHECK_THROWS_WITH(checkpoint::parse_manifest(with_name(name), "m"),
                      Contains("expected the name of a file in the same folder"));
  }
  CHECK_THROWS_WITH(checkpoint::parse_manifest(with_name("a") + " ", "m"), Contains("not in the form"));
  const std::string deep = "{\"files\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  CHECK_THROWS_WITH(checkpoint::parse_manifest(deep, "m"), Contains("nested more than"));
}

TEST_CASE("trainer.json is read strictly", "[train][checkpoint]") {
  checkpoint::TrainerState state;
  state.step = 7;
  state.val_loss = 2.5;
  state.config = {{"a", 1}};
  const std::string text = checkpoint::format_trainer_state(state, "0.1.0");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  const checkpoint::TrainerState again = checkpoint::parse_trainer_state(text, "t");
  CHECK(again.step == 7);
  CHECK(again.val_loss == 2.5);
  CHECK_FALSE(again.train_loss.has_value());
  CHECK(again.config == state.config);
  CHECK_THROWS_WITH(checkpoint::parse_trainer_state(with("7", "1e300"), "t"),
                    "t: step: expected an integer, got 1e+300");
  CHECK_THROWS_WITH(checkpoint::parse_trainer_state(with("7", "9223372036854775808"), "t"),
                    "t: step: expected an integer below 2^63, got 9223372036854775808");
  CHECK_THROWS_WITH(checkpoint::parse_trainer_state(with("7", "-1"), "t"),
                    Contains("t: step: expected an integer from 0 on"));
  CHECK_THROWS_WITH(checkpoint::parse_trainer_state(with("2.5", "\"x\""), "t"),
                    "t: val_loss: expected a number or null, got \"x\"");
  CHECK_THROWS_WITH(checkpoint::parse_trainer_state(with("\"step\"", "\"stop\""), "t"), "t: key \"step\" is missing");
}
