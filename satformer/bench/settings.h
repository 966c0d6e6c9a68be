#pragma once
// What is measured: from the command's flags to one training configuration an architecture.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "satformer/bench/trunk.h"
#include "satformer/run/run_config.h"

namespace satformer::bench {

struct BenchSettings {
  std::vector<std::string> architectures;  // any spelling; {"all"}: every one there is
  std::string size = "small";              // CONFIG_DIR/ARCHITECTURE/SIZE.json
  std::filesystem::path config_dir;        // empty: find_config_dir()
  std::vector<std::string> overrides;      // KEY=VALUE, keys of the model, or training.KEY
  std::int64_t batch = 4, seq_length = 256;
  std::string dtype = "float32";  // float32 or bfloat16
  std::string device = "cpu";     // cpu or cuda:N
  std::int64_t threads = 1;
  std::int64_t rounds = 5, steps_per_round = 1;
  int ranks = 1;  // of run_scaling: they divide the batch and, on the CPU, the threads

  std::int64_t tokens_per_step() const { return batch * seq_length; }
};

// One architecture's training, as `train` would read it from a file; data.data_dir is not set.
struct BenchPlan {
  BenchSettings settings;
  std::vector<train::RunConfig> configs;  // in the order of the list of architectures
  std::vector<nlohmann::json> given;      // the same as they were parsed: without defaults, which are a build's own
  Trunk trunk;                            // the same for all
};

// The configs folder of an installation or of the clone that the executable was built in: the first of
// share/satformer/configs and configs beside one of the executable's parent folders. Error when there is none.
std::filesystem::path find_config_dir();

// Reads the model section of each architecture's file and applies the overrides; max_position_embeddings grows to
// seq_length. Optimiser and schedule are the same for all: AdamW, constant learning rate, clipping at 1.
// Error names an unknown architecture, size or key and the nearest known one, trunks that are not the same,
// and ranks that cannot have a sequence each or, on the CPU, the same number of threads.
BenchPlan make_plan(const BenchSettings& settings);

// {"size", "set", "batch", "seq", "dtype", "device", "threads", "rounds", "steps_per_round"}
nlohmann::json to_json(const BenchSettings& settings);
// "4 x 256 tokens a step, float32, cpu, CPU threads 2; rounds 5, steps a round 1"
std::string describe(const BenchSettings& settings);

}  // namespace satformer::bench
