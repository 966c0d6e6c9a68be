#pragma once
// Where a run and its checkpoints lie on the disk. Without torch.
//
//   RUN/metrics.jsonl, RUN/tensorboard/             the run's metrics (train/metrics.h)
//   RUN/checkpoints/step_00000100/                  a checkpoint, the state after 100 steps:
//     model.safetensors      parameters, float32, by their names; a tied head is stored once
//     optimizer.safetensors  AdamW's state: exp_avg.NAME, exp_avg_sq.NAME, step.NAME
//     trainer.json           TrainerState
//     config.json            the model's configuration in the published layout
//     tokenizer.model        where the data folder has one
//     manifest.json          sizes and checksums of all of them
//
// A checkpoint appears under its name only when it is whole.
#include <cstdint>
#include <filesystem>
#include <vector>

namespace satformer::checkpoint {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kTrainerFile = "trainer.json";
constexpr const char* kConfigFile = "config.json";
constexpr const char* kTokenizerFile = "tokenizer.model";
constexpr const char* kManifestFile = "manifest.json";

constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kTensorBoardFolder = "tensorboard";
constexpr const char* kCheckpointsFolder = "checkpoints";

// RUN/checkpoints/step_NNNNNNNN.
std::filesystem::path path_of_step(const std::filesystem::path& run, std::int64_t step);

// The checkpoints of a run, oldest first; none where the folder holds no run.
std::vector<std::filesystem::path> list(const std::filesystem::path& run);

// `path` itself when it is a checkpoint, else its newest checkpoint when it is a run; Error when it is neither.
std::filesystem::path find(const std::filesystem::path& path);

// Whether a run has begun here: metrics or a checkpoint.
bool holds_run(const std::filesystem::path& folder);

// Removes a run's checkpoints but the newest `keep_last`. A kill in the middle leaves none half under its name.
void remove_older(const std::filesystem::path& run, std::int64_t keep_last);

// Removes what a killed process left half-written or half-removed in the run's folder: checkpoints, metrics.
void remove_stale(const std::filesystem::path& run);

}  // namespace satformer::checkpoint
