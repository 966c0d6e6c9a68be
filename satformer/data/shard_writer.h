#pragma once
// Writes one split as shards of ours: PREFIX_000000.bin, PREFIX_000001.bin, ...
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace satformer::data {

class SplitWriter {
 public:
  // At most `shard_tokens` tokens a file; a document may run on in the next one.
  SplitWriter(std::filesystem::path directory, std::string prefix, std::int64_t vocab_size, std::int64_t shard_tokens);

  // Ids must be in [0, vocab_size). Error with the file and the system's reason when it cannot be written.
  void write(std::span<const std::int32_t> ids);
  // Completes the last file; must be called, and nothing written afterwards.
  void finish();

  std::int64_t num_tokens() const { return num_tokens_; }
  std::int64_t num_shards() const { return num_shards_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void open_shard();
  void close_shard();
  void append(std::span<const std::int32_t> ids);
  [[noreturn]] void fail_writing() const;

  std::filesystem::path directory_, path_;
  std::string prefix_;
  std::int64_t vocab_size_, shard_tokens_;
  int token_bytes_;
  std::unique_ptr<std::FILE, Close> file_;  // the shard being written
  std::int64_t tokens_in_shard_ = 0;
  std::uint32_t crc_ = 0;
  std::int64_t num_tokens_ = 0, num_shards_ = 0;
  std::vector<std::uint16_t> narrow_;  // ids in the file's width
};

}  // namespace satformer::data
