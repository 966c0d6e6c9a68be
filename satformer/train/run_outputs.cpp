#include "satformer/train/run_outputs.h"

#include <optional>

#include "satformer/checkpoint/layout.h"
#include "satformer/io/folder_lock.h"

namespace satformer::train {
namespace {

FileDescriptor take_folder(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  FileDescriptor lock = lock_folder(folder);
  checkpoint::remove_stale(folder);
  return lock;
}

}  // namespace

RunOutputs::RunOutputs(const std::filesystem::path& folder, const RunConfig& config, std::int64_t steps_done,
                       bool resumes)
    : lock_(take_folder(folder)),
      writer_(folder, config.logging.tensorboard, resumes ? std::optional(steps_done) : std::nullopt),
      display_(steps_done, config.training.schedule.max_steps, config.logging.log_interval) {}

void RunOutputs::add(const StepMetrics& metrics) {
  writer_.write(metrics);
  display_.show(metrics);
}

void RunOutputs::add(const ValidationMetrics& metrics) {
  writer_.write(metrics);
  display_.show(metrics);
}

}  // namespace satformer::train
