#pragma once
// A tiny model, its data and configuration for tests of training.
#include <ATen/Parallel.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "satformer/train/trainer.h"

namespace satformer::testing {

constexpr std::int64_t kTinyVocabulary = 61;

// Raw uint16 shards with a pattern that a model can learn: each id follows from the one before, with some noise.
inline void write_tiny_split(const std::filesystem::path& path, std::int64_t tokens, std::uint32_t seed) {
  std::ofstream file(path, std::ios::binary);
  std::uint32_t state = seed;
  std::uint16_t id = 1;
  for (std::int64_t i = 0; i < tokens; ++i) {
    state = state * 1664525u + 1013904223u;
    id = static_cast<std::uint16_t>((state >> 24) < 32 ? (state >> 8) % kTinyVocabulary
                                                       : (id * 7 + 3) % kTinyVocabulary);
    file.write(reinterpret_cast<const char*>(&id), sizeof(id));
  }
}

inline std::filesystem::path make_tiny_data(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_tiny_split(folder / "train_000.bin", 4001, 1);
  write_tiny_split(folder / "val_000.bin", 500, 2);
  return folder;
}

inline std::string tiny_config_text(const std::filesystem::path& data) {
  return R"({"model": {"architecture": "satformer", "config_overrides": {"vocab_size": 61, "hidden_size": 32,
    "num_hidden_layers": 3, "num_heads": 4, "num_kv_heads": 2, "intermediate_size": 48, "qk_norm": true,
    "max_position_embeddings": 64, "tie_word_embeddings": true}},
  "data": {"data_dir": ")" +
         data.string() + R"(", "seq_length": 16},
  "training": {"batch_size": 4, "gradient_accumulation_steps": 2, "learning_rate": 3e-3, "min_lr": 3e-4,
    "warmup_steps": 4, "max_steps": 20, "dtype": "float32"},
  "checkpointing": {"checkpoint_interval": 5},
  "logging": {"eval_interval": 7, "eval_tokens": 300, "log_interval": 1000},
  "system": {"seed": 5, "device": "cpu"}})";
}

inline train::RunConfig tiny_config(const std::filesystem::path& data, const std::vector<std::string>& overrides = {}) {
  return train::parse_run_config(tiny_config_text(data), "tiny.json", overrides);
}

inline train::TrainerOptions tiny_options(const std::filesystem::path& output, train::ResumeRequest resume = {}) {
  at::set_num_threads(1);  // so small a model is faster so
  train::TrainerOptions options;
  options.output = output;
  options.resume = std::move(resume);
  return options;
}

}  // namespace satformer::testing
