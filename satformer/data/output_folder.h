#pragma once
// The folder that `prepare` writes: new, or in the place of an earlier one.
#include <filesystem>
#include <optional>

#include "satformer/io/files.h"

namespace satformer::data {

// Error when `output` exists and is not an empty folder, unless `overwrite` is set and it holds nothing but what
// `prepare` writes.
void check_output(const std::filesystem::path& output, bool overwrite);

class OutputFolder {
 public:
  // Call check_output first. Makes a hidden folder beside `output`.
  explicit OutputFolder(const std::filesystem::path& output);

  const std::filesystem::path& path() const { return staged_->path(); }
  // Puts the folder under its name, whole; an earlier one stays until that moment. Without it nothing is left.
  void commit();

 private:
  void replace_earlier() const;

  std::filesystem::path output_;
  std::filesystem::path newer_;  // where the folder waits to take an existing one's place; empty: none exists
  std::optional<StagedDirectory> staged_;
};

}  // namespace satformer::data
