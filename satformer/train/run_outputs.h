#pragma once
// What rank 0 writes and shows of a run while it trains.
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "satformer/io/file_descriptor.h"
#include "satformer/run/run_config.h"
#include "satformer/train/display.h"
#include "satformer/train/metrics.h"

namespace satformer::train {

class RunOutputs {
 public:
  // Locks the run's folder (Error where another process trains into it), removes what killed processes left, and opens
  // the metrics. `steps_done`: by earlier processes. `resumes`: metrics of later steps are cut off.
  RunOutputs(const std::filesystem::path& folder, const RunConfig& config, std::int64_t steps_done, bool resumes);

  void add(const StepMetrics& metrics);
  void add(const ValidationMetrics& metrics);
  // A line that stays on the display.
  void say(std::string_view text) { display_.say(text); }
  // Flushes the metrics to the disk.
  void sync() { writer_.sync(); }

 private:
  FileDescriptor lock_;
  MetricsWriter writer_;
  Display display_;
};

}  // namespace satformer::train
