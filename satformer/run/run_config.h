#pragma once
// A run's configuration: the sections of the published JSON files (model, tokenizer, data, training, checkpointing,
// logging, system) and our additional keys and section (distributed). docs/configuration.md lists every key; `satformer
// train --help-config` prints the same list.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "satformer/config/config.h"
#include "satformer/data/batch_options.h"
#include "satformer/models/model_config.h"
#include "satformer/optim/adamw_options.h"
#include "satformer/optim/schedule.h"

namespace satformer::train {

// The members hold a file's values; their initialisers are the keys' defaults.

struct DataConfig {
  std::filesystem::path data_dir = "./data";
  std::string train_prefix = "train", val_prefix = "val";
  std::int64_t seq_length = 2048;
  bool document_mask = false;
  std::optional<std::int64_t> end_of_text_id;  // null: dataset.json's, else the model's eos_token_id
  bool verify_shards = true;
};

struct TrainingConfig {
  std::int64_t batch_size = 8;
  std::int64_t gradient_accumulation_steps = 4;
  std::int64_t micro_batch_size = 0;  // sequences that one process holds at a time; null in a file: batch_size
  double warmup_tokens = 0.5;         // billions
  std::optional<std::int64_t> warmup_steps;
  double max_tokens = 10.0;  // billions
  std::optional<std::int64_t> max_steps;
  std::string lr_decay_style = "cosine";
  optim::Schedule schedule;  // from the keys above, in steps
  double weight_decay = 0.1;
  optim::AdamWOptions adamw;
  double grad_clip = 1.0;      // 0: off
  std::string dtype = "auto";  // auto, float32, bfloat16
  bool gradient_checkpointing = false;
  bool fused = true;  // false: the plain path (docs/architectures.md)
  bool cuda_graph = false;
  std::int64_t max_skipped_steps = 10;

  std::int64_t sequences_per_step() const { return batch_size * gradient_accumulation_steps; }
};

struct CheckpointConfig {
  std::filesystem::path checkpoint_dir = "./checkpoints";
  std::int64_t checkpoint_interval = 1000;  // steps; 0: at the end only
  std::optional<std::int64_t> keep_last;    // null: all
};

struct LoggingConfig {
  std::int64_t log_interval = 10;       // steps between progress lines
  std::int64_t eval_interval = 500;     // steps; 0: at the end only
  std::int64_t eval_tokens = 10485760;  // target tokens of one validation
  bool tensorboard = true;
};

struct SystemConfig {
  std::uint64_t seed = 42;
  std::string device = "auto";
  std::optional<std::int64_t> threads;
};

struct DistributedConfig {
  double bucket_mb = 25.0;          // MiB of gradients that are summed at a time
  bool shard_optimizer = false;     // each rank holds its part of the moments
  double timeout = 600.0;           // seconds that a rank waits for another one
  std::int64_t check_interval = 0;  // steps between comparisons of the parameters; 0: none
};

struct RunConfig {
  models::ModelConfig model;
  DataConfig data;
  TrainingConfig training;
  CheckpointConfig checkpointing;
  LoggingConfig logging;
  SystemConfig system;
  DistributedConfig distributed;

  nlohmann::json values;             // every key with a meaning, as parsed: what a checkpoint stores
  std::vector<std::string> ignored;  // keys given that are known (published) but have no meaning here
};

// Every known key of a run's configuration.
const KeyList& run_config_keys();

// Error names the file, the key, what was expected and what came. Overrides: config/config.h.
RunConfig load_run_config(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
RunConfig parse_run_config(const std::string& text, const std::string& source,
                           const std::vector<std::string>& overrides = {});

// How batches are cut from this configuration's data; looks into data_dir for dataset.json's end-of-text id.
data::BatchOptions batch_options(const DataConfig& data, const models::ModelConfig& model);

// The keys with a meaning as a Markdown table: key, default, help.
std::string describe_run_config_keys();

}  // namespace satformer::train
