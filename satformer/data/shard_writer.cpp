#include "satformer/data/shard_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/data/shard.h"
#include "satformer/io/files.h"

namespace satformer::data {

SplitWriter::SplitWriter(std::filesystem::path directory, std::string prefix, std::int64_t vocab_size,
                         std::int64_t shard_tokens)
    : directory_(std::move(directory)),
      prefix_(std::move(prefix)),
      vocab_size_(vocab_size),
      shard_tokens_(shard_tokens),
      token_bytes_(token_bytes_for(static_cast<std::uint64_t>(vocab_size))) {
  require(shard_tokens >= 1, "tokens per shard must be at least 1, got {}", shard_tokens);
}

void SplitWriter::write(std::span<const std::int32_t> ids) {
  while (!ids.empty()) {
    if (!file_) open_shard();
    const auto room = static_cast<std::size_t>(shard_tokens_ - tokens_in_shard_);
    const auto part = ids.first(std::min(ids.size(), room));
    append(part);
    if (tokens_in_shard_ == shard_tokens_) close_shard();
    ids = ids.subspan(part.size());
  }
}

void SplitWriter::finish() {
  if (file_) close_shard();
}

void SplitWriter::open_shard() {
  constexpr std::int64_t kMaxShards = 1'000'000;  // six digits keep the order of names that of the shards
  require(num_shards_ < kMaxShards, "{}: more than {} shards; raise the tokens per shard", directory_.string(),
          kMaxShards);
  path_ = directory_ / fmt::format("{}_{:06}.bin", prefix_, num_shards_);
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (!file_) fail_writing();
  // The header's place; its contents are known at the end.
  const std::array<std::byte, kShardHeaderBytes> blank{};
  if (std::fwrite(blank.data(), 1, blank.size(), file_.get()) != blank.size()) fail_writing();
  ++num_shards_;
  tokens_in_shard_ = 0;
  crc_ = 0;
}

void SplitWriter::append(std::span<const std::int32_t> ids) {
  std::span<const std::byte> bytes = std::as_bytes(ids);
  if (token_bytes_ == 2) {
    narrow_.assign(ids.begin(), ids.end());
    bytes = std::as_bytes(std::span(narrow_));
  }
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail_writing();
  crc_ = crc32_of(bytes, crc_);
  tokens_in_shard_ += static_cast<std::int64_t>(ids.size());
  num_tokens_ += static_cast<std::int64_t>(ids.size());
}

void SplitWriter::close_shard() {
  ShardHeader header;
  header.token_bytes = token_bytes_;
  header.vocab_size = static_cast<std::uint64_t>(vocab_size_);
  header.num_tokens = static_cast<std::uint64_t>(tokens_in_shard_);
  header.payload_crc = crc_;
  const auto bytes = format_shard_header(header);
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail_writing();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail_writing();
  if (std::fclose(file_.release()) != 0) fail_writing();
}

void SplitWriter::fail_writing() const { fail("{}: cannot be written: {}", path_.string(), std::strerror(errno)); }

}  // namespace satformer::data
