#pragma once
// One split (train or val) as one long array of token ids over memory-mapped shards.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "satformer/io/files.h"

namespace satformer::data {

// What `prepare` leaves beside its shards in dataset.json; absent for data made by other tools.
struct SplitInfo {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;  // end-of-text ids included
  std::int64_t bytes = 0;   // UTF-8 bytes of the documents' text
};
struct DatasetInfo {
  std::int64_t vocab_size = 0;
  std::int64_t end_of_text_id = 0;
  std::string tokenizer_crc32;  // of tokenizer.model beside it, eight hex digits
  SplitInfo train, val;
};
// Its text without the checksum (io/sealed_json.h); Error names `source`, the key and what came.
DatasetInfo parse_dataset_info(const std::string& text, const std::string& source);
std::string format_dataset_info(const DatasetInfo& info);
// Of a folder; nothing where it has no dataset.json.
std::optional<DatasetInfo> read_dataset_info(const std::filesystem::path& directory);
void write_dataset_info(const std::filesystem::path& directory, const DatasetInfo& info);

// The folder's tokenizer.model; nothing where it has none. Error when it is not the one that dataset.json, where the
// folder has that, was written with.
std::optional<std::filesystem::path> find_tokenizer(const std::filesystem::path& directory);

struct DatasetOptions {
  std::int64_t vocab_size = 0;  // ids must be below it; 0: not checked
  bool verify = true;           // checksums and id range of every shard at opening
};

class TokenDataset {
 public:
  // Every shard PREFIX*.bin of the folder in name order. Error names the shard and what is wrong with it: missing,
  // truncated, odd byte count, wrong magic or version, checksum, an id outside the vocabulary (with its position).
  static TokenDataset open(const std::filesystem::path& directory, const std::string& prefix,
                           const DatasetOptions& options);

  std::int64_t num_tokens() const { return num_tokens_; }
  std::size_t num_shards() const { return shards_.size(); }
  // Copies tokens [begin, begin + out.size()) of the whole split; ranges may cross shards.
  void read(std::int64_t begin, std::span<std::int64_t> out) const;
  // Changes when any shard's name, size, header or sampled contents change: ranks compare it, checkpoints store it.
  std::uint64_t fingerprint() const { return fingerprint_; }
  const std::string& name() const { return name_; }  // "DIRECTORY/PREFIX", for messages

 private:
  struct Shard {
    std::shared_ptr<const MappedFile> file;
    std::int64_t first = 0;  // index of its first token in the split
    std::int64_t count = 0;
    std::size_t offset = 0;  // bytes before the first token
    int token_bytes = 2;     // 2 or 4
  };
  void check_ids(const Shard& shard, std::int64_t first, std::span<const std::int64_t> ids) const;

  std::string name_;
  std::vector<Shard> shards_;
  std::int64_t num_tokens_ = 0;
  std::int64_t vocab_size_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace satformer::data
