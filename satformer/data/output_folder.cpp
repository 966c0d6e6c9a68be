#include "satformer/data/output_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "satformer/core/error.h"

namespace satformer::data {
namespace {

namespace fs = std::filesystem;

// Overwriting must not be a way to lose other files by a wrong path.
bool is_prepared_file(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  const bool is_shard = (name.starts_with("train_") || name.starts_with("val_")) && name.ends_with(".bin");
  return entry.is_regular_file() && (is_shard || name == "tokenizer.model" || name == "dataset.json");
}

fs::path without_trailing_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

}  // namespace

void check_output(const fs::path& output, bool overwrite) {
  if (!fs::exists(fs::symlink_status(output))) return;
  require(fs::is_directory(fs::symlink_status(without_trailing_slash(output))),
          "{}: exists and is no folder; give --output another name", output.string());
  if (fs::is_empty(output)) return;
  require(overwrite, "{}: exists and is not empty; give another folder or --overwrite", output.string());
  for (const fs::directory_entry& entry : fs::directory_iterator(output)) {
    require(is_prepared_file(entry), "{}: not overwritten, because it holds {}, which `prepare` did not write",
            output.string(), entry.path().filename().string());
  }
}

OutputFolder::OutputFolder(const fs::path& output) : output_(without_trailing_slash(output)) {
  const fs::path parent = output_.has_parent_path() ? output_.parent_path() : fs::path(".");
  StagedDirectory::remove_stale(parent);
  if (fs::exists(output_)) {
    newer_ = parent / fmt::format(".{}.new", output_.filename().string());
    fs::remove_all(newer_);  // left by a process that was killed while it replaced the folder
  }
  staged_.emplace(newer_.empty() ? output_ : newer_);
}

void OutputFolder::commit() {
  staged_->commit();
  if (!newer_.empty()) replace_earlier();
}

void OutputFolder::replace_earlier() const {
  // One step: at every instant the name stands for the earlier folder or the new one.
  if (::renameat2(AT_FDCWD, newer_.c_str(), AT_FDCWD, output_.c_str(), RENAME_EXCHANGE) != 0) {
    const int reason = errno;
    fs::remove_all(newer_);
    fail("{}: cannot be replaced: {}; remove it first", output_.string(), std::strerror(reason));
  }
  fs::remove_all(newer_);
  sync_path(output_.has_parent_path() ? output_.parent_path() : fs::path("."));
}

}  // namespace satformer::data
