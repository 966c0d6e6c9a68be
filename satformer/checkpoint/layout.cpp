#include "satformer/checkpoint/layout.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step_";
constexpr std::string_view kRemovedSuffix = ".removed";

// "step_00000100"
bool is_step_name(const std::string& name) {
  return name.size() >= kStepPrefix.size() + 8 && name.starts_with(kStepPrefix) &&
         std::all_of(name.begin() + kStepPrefix.size(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// ".step_00000100.removed": a checkpoint on its way out.
bool is_removed_name(const std::string& name) {
  return name.starts_with(fmt::format(".{}", kStepPrefix)) && name.ends_with(kRemovedSuffix);
}

// A rename first, so that a kill in the middle does not leave half a checkpoint under its name.
void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path hidden =
      checkpoint.parent_path() / fmt::format(".{}{}", checkpoint.filename().string(), kRemovedSuffix);
  fs::rename(checkpoint, hidden);
  fs::remove_all(hidden);
}

}  // namespace

fs::path path_of_step(const fs::path& run, std::int64_t step) {
  return run / kCheckpointsFolder / fmt::format("{}{:08}", kStepPrefix, step);
}

std::vector<fs::path> list(const fs::path& run) {
  const fs::path folder = run / kCheckpointsFolder;
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && is_step_name(entry.path().filename().string())) found.push_back(entry.path());
  }
  // By number: names longer than eight digits sort after shorter ones.
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const std::string x = a.filename().string(), y = b.filename().string();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return found;
}

fs::path find(const fs::path& path) {
  require(fs::is_directory(path), "{}: no such folder; expected a checkpoint or a run", path.string());
  if (fs::exists(path / kManifestFile) || fs::exists(path / kModelFile)) return path;
  const std::vector<fs::path> checkpoints = list(path);
  require(!checkpoints.empty(), "{}: neither a checkpoint (with {}) nor a run (with {}/{}NNNNNNNN)", path.string(),
          kManifestFile, kCheckpointsFolder, kStepPrefix);
  return checkpoints.back();
}

bool holds_run(const fs::path& folder) { return fs::exists(folder / kMetricsFile) || !list(folder).empty(); }

void remove_older(const fs::path& run, std::int64_t keep_last) {
  const std::vector<fs::path> checkpoints = list(run);
  const auto keep = static_cast<std::size_t>(keep_last);
  for (std::size_t i = 0; i + keep < checkpoints.size(); ++i) remove_checkpoint(checkpoints[i]);
}

void remove_stale(const fs::path& run) {
  const fs::path folder = run / kCheckpointsFolder;
  StagedDirectory::remove_stale(run);
  StagedDirectory::remove_stale(folder);
  if (!fs::is_directory(folder)) return;
  std::vector<fs::path> removed;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_removed_name(entry.path().filename().string())) removed.push_back(entry.path());
  }
  for (const fs::path& path : removed) fs::remove_all(path);
}

}  // namespace satformer::checkpoint
