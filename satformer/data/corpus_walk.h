#pragma once
// All input files of `prepare`, one after the other.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "satformer/data/corpus.h"
#include "satformer/data/prepare.h"

namespace satformer::data {

// Sum of the files' sizes on the disk. Error when one is missing or no regular file.
std::int64_t file_bytes(const std::vector<std::filesystem::path>& inputs);

// `on_bytes` is told how many of those have been read. Error when options.should_stop says so.
void walk_corpus(const PrepareOptions& options, DocumentSink& sink,
                 const std::function<void(std::int64_t done)>& on_bytes);

}  // namespace satformer::data
