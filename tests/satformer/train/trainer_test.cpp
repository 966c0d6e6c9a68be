#include "satformer/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include <cmath>
#include <fstream>
#include <map>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/parameters.h"
#include "satformer/checkpoint/save.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/io/folder_lock.h"
#include "satformer/models/architectures.h"
#include "satformer/runtime/safetensors.h"
#include "tests/catch.h"
#include "tests/support/folders.h"
#include "tests/support/tiny_run.h"

namespace {

using namespace satformer;
using namespace satformer::train;
using Catch::Matchers::Contains;

TrainingResult train_tiny(const std::filesystem::path& data, const std::filesystem::path& output,
                          const std::vector<std::string>& overrides = {}, ResumeRequest resume = {}) {
  const RunConfig config = testing::tiny_config(data, overrides);
  Trainer trainer(config, testing::tiny_options(output, std::move(resume)));
  return trainer.run();
}

std::vector<nlohmann::json> metrics_without_times(const std::filesystem::path& run) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    object.erase("seconds");
    object.erase("tokens_per_second");
    lines.push_back(std::move(object));
  }
  return lines;
}

void require_same_tensors(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    INFO(file);
    REQUIRE(read_file(a / file) == read_file(b / file));
  }
}

double largest_difference(const std::filesystem::path& a, const std::filesystem::path& b) {
  const TensorMap x = read_safetensors(a / "model.safetensors").tensors;
  const TensorMap y = read_safetensors(b / "model.safetensors").tensors;
  double largest = 0.0;
  for (const auto& [name, tensor] : x) {
    largest = std::max(largest, (tensor - y.at(name)).abs().max().item<double>());
  }
  return largest;
}

// The parameter that every gradient depends on.
at::Tensor final_norm(Trainer& trainer) {
  for (const auto& parameter : checkpoint::named_parameters(trainer.model())) {
    if (parameter.name == "model.norm.weight") return parameter.tensor;
  }
  throw std::logic_error("no model.norm.weight");
}

}  // namespace

TEST_CASE("training lowers the loss and leaves what it promises", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto run = folder.path() / "run";
  const TrainingResult result = train_tiny(data, run, {"max_steps=60", "eval_interval=30", "checkpoint_interval=40"});
  CHECK(result.state.step == 60);
  CHECK(result.state.tokens == std::int64_t{60} * 8 * 16);
  CHECK(result.state.skipped_steps == 0);
  CHECK(result.state.val_tokens == 300);
  CHECK(*result.state.val_loss < std::log(61.0) - 0.5);
  CHECK(result.checkpoint == run / "checkpoints" / "step_00000060");
  CHECK(checkpoint::list(run).size() == 2);
  CHECK(std::filesystem::exists(run / "tensorboard"));
  const auto lines = metrics_without_times(run);
  CHECK(lines.size() == 62);  // a line a step, two validations
  CHECK(lines.back()["val_loss"] == *result.state.val_loss);
  CHECK(checkpoint::load_trainer_state(result.checkpoint).val_loss == result.state.val_loss);
  CHECK(lines.front()["loss"].get<double>() == Approx(std::log(61.0)).margin(0.3));
}

TEST_CASE("20 steps straight are 10 and 10 resumed, bit for bit", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto straight = folder.path() / "straight", resumed = folder.path() / "resumed";
  train_tiny(data, straight);
  // Stopped after step 13: the run goes on from the checkpoint of step 10, as after a kill.
  {
    const RunConfig config = testing::tiny_config(data);
    TrainerOptions options = testing::tiny_options(resumed);
    int steps = 0;
    options.stop_requested = [&steps] { return ++steps == 13; };
    const TrainingResult result = Trainer(config, options).run();
    CHECK(result.stopped);
    CHECK(result.state.step == 13);
    std::filesystem::remove_all(result.checkpoint);
  }
  const TrainingResult result = train_tiny(data, resumed, {}, {.newest = true});
  CHECK(result.state.step == 20);
  require_same_tensors(straight / "checkpoints/step_00000020", resumed / "checkpoints/step_00000020");
  CHECK(metrics_without_times(straight) == metrics_without_times(resumed));
  CHECK(read_file(straight / "checkpoints/step_00000020/trainer.json") ==
        read_file(resumed / "checkpoints/step_00000020/trainer.json"));
}

TEST_CASE("one step is the same however it is cut into micro-batches", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto after = [&](const std::string& name, const std::vector<std::string>& cut) {
    std::vector<std::string> overrides = {"max_steps=5", "checkpoint_interval=0", "learning_rate=1e-3"};
    overrides.insert(overrides.end(), cut.begin(), cut.end());
    return train_tiny(data, folder.path() / name, overrides);
  };
  const TrainingResult whole = after("8x1", {"batch_size=8", "gradient_accumulation_steps=1"});
  const TrainingResult single = after("1x8", {"batch_size=1", "gradient_accumulation_steps=8"});
  const TrainingResult uneven = after("8by3", {"batch_size=8", "gradient_accumulation_steps=1", "micro_batch_size=3"});
  for (const TrainingResult* other : {&single, &uneven}) {
    CHECK(*other->state.train_loss == Approx(*whole.state.train_loss).epsilon(1e-6));
    CHECK(*other->state.val_loss == Approx(*whole.state.val_loss).epsilon(1e-6));
    CHECK(largest_difference(whole.checkpoint, other->checkpoint) < 1e-6);
  }
}

TEST_CASE("activation checkpointing changes nothing but memory", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const TrainingResult plain = train_tiny(data, folder.path() / "plain", {"max_steps=3"});
  const TrainingResult recomputed =
      train_tiny(data, folder.path() / "recomputed", {"max_steps=3", "gradient_checkpointing=true"});
  CHECK(largest_difference(plain.checkpoint, recomputed.checkpoint) < 1e-6);
}

// On the CPU the recorded work is called again on the same memory: what a CUDA graph does, but for the recording.
TEST_CASE("recorded passes give the same parameters", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  for (const models::Architecture& item : models::architectures()) {
    const std::string& architecture = item.name;
    INFO(architecture);
    // Micro-batches of 3, 3 and 2: the last is of another shape and runs operator by operator.
    const std::vector<std::string> overrides = {"architecture=" + architecture, "max_steps=4", "micro_batch_size=3"};
    std::vector<std::string> recorded = overrides;
    recorded.emplace_back("cuda_graph=true");
    const TrainingResult plain = train_tiny(data, folder.path() / architecture, overrides);
    const TrainingResult other = train_tiny(data, folder.path() / (architecture + "_recorded"), recorded);
    CHECK(*plain.state.train_loss == *other.state.train_loss);
    CHECK(largest_difference(plain.checkpoint, other.checkpoint) == 0);
  }
  CHECK_THROWS_WITH(testing::tiny_config(data, {"cuda_graph=true", "document_mask=true"}),
                    "tiny.json: training.cuda_graph needs data.document_mask false");
}

TEST_CASE("a step with a loss that is not finite changes nothing but the position", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const RunConfig config = testing::tiny_config(data);
  Trainer trainer(config, testing::tiny_options(folder.path() / "run"));
  trainer.step();
  const at::Tensor norm = final_norm(trainer);
  const at::Tensor good = norm.detach().clone();
  std::map<std::string, at::Tensor> before;
  for (const auto& [name, tensor] : trainer.optimizer().state()) before[name] = tensor.clone();
  {
    const at::NoGradGuard no_grad;
    norm[3] = NAN;
  }
  const StepMetrics skipped = trainer.step();
  CHECK(skipped.skipped);
  CHECK(trainer.state().step == 2);
  CHECK(trainer.state().samples == 16);
  CHECK(trainer.state().skipped_steps == 1);
  CHECK(std::isfinite(*trainer.state().train_loss));
  for (const auto& [name, tensor] : trainer.optimizer().state()) {
    INFO(name);
    CHECK(at::equal(tensor, before.at(name)));
  }
  {
    const at::NoGradGuard no_grad;
    norm.copy_(good);
  }
  CHECK_FALSE(trainer.step().skipped);
  CHECK(trainer.state().skipped_in_a_row == 0);
  CHECK(trainer.state().skipped_steps == 1);
}

TEST_CASE("training stops after too many skipped steps and saves nothing that is not finite", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto run = folder.path() / "run";
  const RunConfig config =
      testing::tiny_config(data, {"max_skipped_steps=3", "checkpoint_interval=0", "eval_interval=0"});
  Trainer trainer(config, testing::tiny_options(run));
  {
    const at::NoGradGuard no_grad;
    final_norm(trainer)[0] = INFINITY;
  }
  CHECK_THROWS_WITH(trainer.run(), Contains("not finite in 3 steps in a row, up to step 3"));
  CHECK(checkpoint::list(run).empty());
  const auto lines = metrics_without_times(run);
  REQUIRE(lines.size() == 3);
  for (const auto& line : lines) {
    CHECK(line["skipped"] == true);
    CHECK_FALSE(line.contains("loss"));
  }
  CHECK_THROWS_WITH(checkpoint::save(run, {trainer.model(), trainer.optimizer(), trainer.state(), {}}),
                    Contains("model.norm.weight is not finite after step 3"));
  CHECK(checkpoint::list(run).empty());
}

TEST_CASE("a huge learning rate never leaves parameters that are not finite", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto run = folder.path() / "run";
  CHECK_THROWS_AS(train_tiny(data, run, {"learning_rate=1e38", "warmup_steps=0", "checkpoint_interval=1"}), Error);
  for (const auto& checkpoint : checkpoint::list(run)) {
    for (const auto& [name, tensor] : read_safetensors(checkpoint / "model.safetensors").tensors) {
      INFO(name);
      CHECK(tensor.isfinite().all().item<bool>());
    }
  }
}

TEST_CASE("resuming refuses another model, data order or folder", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto run = folder.path() / "run";
  train_tiny(data, run, {"max_steps=10"});
  CHECK_THROWS_WITH(train_tiny(data, run), Contains("already holds a run") && Contains("--resume"));
  const auto resume = [&](const std::string& override_) { train_tiny(data, run, {override_}, {.newest = true}); };
  CHECK_THROWS_WITH(resume("system.seed=6"), Contains("system.seed is 6") && Contains("trained with 5"));
  CHECK_THROWS_WITH(resume("data.seq_length=32"), Contains("data.seq_length is 32"));
  CHECK_THROWS_WITH(resume("training.batch_size=2"), Contains("training.batch_size x"));
  CHECK_THROWS_WITH(resume("model.architecture=transformer"), Contains("the model's architecture is \"transformer\""));
  CHECK_THROWS_WITH(resume("rope_theta=5000"), Contains("rope_theta is 5000"));
  testing::write_tiny_split(data / "train_001.bin", 300, 3);
  CHECK_THROWS_WITH(resume("max_steps=20"), Contains("its training data are not those of"));
  std::filesystem::remove(data / "train_001.bin");

  // Other keys may change; another folder may continue a given checkpoint; an older one in a longer run may not.
  const auto other = folder.path() / "other";
  CHECK(train_tiny(data, other, {"max_steps=12"}, {.from = run / "checkpoints/step_00000005"}).state.step == 12);
  CHECK(metrics_without_times(other).front()["step"] == 6);
  CHECK_THROWS_WITH(train_tiny(data, run, {}, {.from = run / "checkpoints/step_00000005"}),
                    Contains("step_00000010 is later than"));
  CHECK_THROWS_WITH(train_tiny(data, run, {}, {.from = other}), Contains("already holds another run"));
  resume("training.max_steps=14");
  CHECK(checkpoint::list(run).back().filename() == "step_00000014");
  // Nothing left to do.
  CHECK(train_tiny(data, run, {"max_steps=14"}, {.newest = true}).state.step == 14);
}

TEST_CASE("a document mask needs an end-of-text id that exists, and resuming the same one", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto run = [&](const std::vector<std::string>& overrides, bool resume) {
    std::vector<std::string> all{"data.document_mask=true"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const RunConfig config = testing::tiny_config(data, all);
    TrainerOptions options;
    options.output = folder.path() / "run";
    options.resume.newest = resume;
    Trainer(config, options).run();
  };
  CHECK_THROWS_WITH(run({"data.end_of_text_id=100000"}, false), Contains("outside the vocabulary"));
  run({"data.end_of_text_id=2", "training.max_steps=1"}, false);
  CHECK_THROWS_WITH(run({"data.end_of_text_id=3", "training.max_steps=2"}, true), Contains("end"));
}

TEST_CASE("one run at a time writes a folder", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const FileDescriptor held = lock_folder(folder.path());
  const RunConfig config = testing::tiny_config(data, {"training.max_steps=1"});
  TrainerOptions options;
  options.output = folder.path();
  CHECK_THROWS_WITH(Trainer(config, options).run(), Contains("another process is writing"));
}

TEST_CASE("resuming without a checkpoint starts at step 0", "[train]") {
  const testing::TemporaryFolder folder;
  const auto data = testing::make_tiny_data(folder.path() / "data");
  const auto run = folder.path() / "run";
  std::filesystem::create_directories(run);
  std::ofstream(run / "metrics.jsonl") << "{\"step\":1}\n{\"st";
  CHECK(train_tiny(data, run, {"max_steps=2"}, {.newest = true}).state.step == 2);
  CHECK(metrics_without_times(run).size() == 3);
}
