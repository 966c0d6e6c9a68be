#include "satformer/data/corpus_walk.h"

#include "satformer/core/error.h"
#include "satformer/data/byte_source.h"

namespace satformer::data {

std::int64_t file_bytes(const std::vector<std::filesystem::path>& inputs) {
  std::int64_t total = 0;
  for (const std::filesystem::path& path : inputs) {
    open_byte_source(path);  // names what is wrong before hours of work on the files before it
    total += static_cast<std::int64_t>(std::filesystem::file_size(path));
  }
  return total;
}

void walk_corpus(const PrepareOptions& options, DocumentSink& sink,
                 const std::function<void(std::int64_t done)>& on_bytes) {
  std::int64_t before = 0;
  for (const std::filesystem::path& path : options.inputs) {
    const auto on_progress = [&](std::uint64_t position) {
      require(!options.should_stop || !options.should_stop(), "interrupted; nothing was written");
      on_bytes(before + static_cast<std::int64_t>(position));
    };
    read_corpus(path, options.corpus, sink, on_progress);
    before += static_cast<std::int64_t>(std::filesystem::file_size(path));
  }
}

}  // namespace satformer::data
