#pragma once
// The ablation of a checkpoint, as a report.
#include <cstdint>
#include <filesystem>

#include "satformer/analysis/ablation/report.h"
#include "satformer/analysis/tokens/source.h"

namespace satformer::analysis {

struct AblationStudyOptions {
  TokenSourceOptions source;
  std::int64_t max_tokens = 0;                // look at about so many from the start; 0: all
  std::int64_t calibration_tokens = 1 << 16;  // of the other split, that the means are taken over
  StreamOptions stream;                       // windows at a time, device and dtype; the rest is set by the study
  AblationScope scope = AblationScope::all;
  AblationOptions ablation;
  BootstrapOptions bootstrap;
};

// Ablates the model of a checkpoint (a step folder, or a run: its newest), over the tokens that the options name, and
// shows its progress.
AblationReport study_ablation(const std::filesystem::path& path, const AblationStudyOptions& options);

}  // namespace satformer::analysis
