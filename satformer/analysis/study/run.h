#pragma once
// The study of a checkpoint, as a report.
#include <cstdint>
#include <filesystem>

#include "satformer/analysis/study/report.h"
#include "satformer/analysis/tokens/source.h"

namespace satformer::analysis {

struct CheckpointStudyOptions {
  TokenSourceOptions source;
  std::int64_t max_tokens = 0;    // look at about so many from the start; 0: all
  StreamOptions stream;           // windows at a time, device and dtype; the rest is set by the study
  bool every_checkpoint = false;  // also all other checkpoints of the run
  bool initialization = true;     // also the model before training
  StudyOptions study;
};

// Studies the model of a checkpoint (a step folder, or a run: its newest), over the tokens that the options name, and
// shows its progress. Error for a model without access to early representations, and for every_checkpoint where `path`
// is no run.
GatesReport study_checkpoint(const std::filesystem::path& path, const CheckpointStudyOptions& options);

}  // namespace satformer::analysis
