#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <cerrno>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "satformer/bench/workload.h"
#include "satformer/core/error.h"
#include "satformer/data/shard_writer.h"
#include "satformer/io/file_descriptor.h"
#include "satformer/train/trainer.h"

namespace satformer::bench {
namespace {

// A folder for as long as the object lives.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "satformer_bench_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail_system("make", name, errno);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// As many windows as `steps` steps need; then the sampler begins again in another order.
void write_random_tokens(const train::RunConfig& config, std::int64_t steps) {
  const train::DataConfig& data = config.data;
  std::mt19937_64 random(config.system.seed);
  std::uniform_int_distribution<std::int32_t> token(0, static_cast<std::int32_t>(config.model.vocab_size - 1));
  std::vector<std::int32_t> ids(
      static_cast<std::size_t>(steps * config.training.sequences_per_step() * data.seq_length + 1));
  for (std::int32_t& id : ids) id = token(random);
  data::SplitWriter writer(data.data_dir, data.train_prefix, config.model.vocab_size,
                           static_cast<std::int64_t>(ids.size()));
  writer.write(ids);
  writer.finish();
}

// The trainer maps its data into memory, so the folder can go as soon as it is open: a killed process leaves nothing.
train::Trainer make_trainer(train::RunConfig config, c10::Device device, c10::ScalarType dtype,
                            const std::shared_ptr<distributed::World>& world) {
  constexpr std::int64_t kSteps = 8;
  const ScratchFolder folder;
  config.data.data_dir = folder.path();
  config.data.train_prefix = "train";
  write_random_tokens(config, kSteps);
  train::TrainerOptions options;
  options.output = folder.path() / "run";
  options.device = device;
  options.dtype = dtype;
  options.validates = false;
  options.world = world;
  return {std::move(config), std::move(options)};
}

class TrainingWorkload : public Workload {
 public:
  TrainingWorkload(train::RunConfig config, c10::Device device, c10::ScalarType dtype,
                   const std::shared_ptr<distributed::World>& world)
      : trainer_(make_trainer(std::move(config), device, dtype, world)),
        num_parameters_(trainer_.model().num_parameters()) {}

  void step() override {
    const train::StepMetrics metrics = trainer_.step();
    require(!metrics.skipped, "step {}: the loss or gradient is not finite", metrics.step);
  }
  std::int64_t num_parameters() const override { return num_parameters_; }

 private:
  train::Trainer trainer_;
  std::int64_t num_parameters_;
};

}  // namespace

std::unique_ptr<Workload> make_training_workload(train::RunConfig config, c10::Device device, c10::ScalarType dtype,
                                                 const std::shared_ptr<distributed::World>& world) {
  return std::make_unique<TrainingWorkload>(std::move(config), device, dtype, world);
}

}  // namespace satformer::bench
