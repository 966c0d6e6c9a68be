#include "satformer/data/token_dataset.h"

#include <algorithm>
#include <cstring>

#include "satformer/core/error.h"
#include "satformer/data/mixing.h"
#include "satformer/data/shard.h"
#include "satformer/data/shard_check.h"

namespace satformer::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> shard_paths(const fs::path& directory, const std::string& prefix) {
  require(fs::is_directory(directory), "{}: no such folder; make the data with `satformer prepare`",
          directory.string());
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && entry.path().extension() == ".bin") paths.push_back(entry.path());
  }
  require(!paths.empty(), "{}: no shard {}*.bin; make the data with `satformer prepare`", directory.string(), prefix);
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Of name, size and contents: by the checksum in the header where the format has one, else byte by byte.
std::uint64_t fingerprint_of(const MappedFile& file, const ShardHeader& header) {
  const std::span<const std::byte> bytes = file.bytes();
  const std::string name = file.path().filename().string();
  std::uint64_t result = mix_bits(bytes.size());
  result = mix_bits(result ^ crc32_of(std::as_bytes(std::span(name))));
  result = mix_bits(result ^ (header.format == ShardFormat::ours ? header.payload_crc : crc32_of(bytes)));
  return result;
}

template <typename Id>
void copy_ids(std::span<const std::byte> bytes, std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Id id;
    std::memcpy(&id, bytes.data() + i * sizeof(Id), sizeof(Id));
    out[i] = id;
  }
}

}  // namespace

TokenDataset TokenDataset::open(const fs::path& directory, const std::string& prefix, const DatasetOptions& options) {
  TokenDataset dataset;
  dataset.name_ = (directory / prefix).string();
  dataset.vocab_size_ = options.vocab_size;
  const auto vocab_size = static_cast<std::uint64_t>(options.vocab_size);
  for (const fs::path& path : shard_paths(directory, prefix)) {
    Shard shard;
    shard.file = std::make_shared<const MappedFile>(path);
    const std::span<const std::byte> bytes = shard.file->bytes();
    const ShardHeader header =
        parse_shard_header(bytes.first(std::min(bytes.size(), kShardHeadBytes)), bytes.size(), path.string());
    require(vocab_size == 0 || header.vocab_size <= vocab_size,
            "{}: its vocabulary of {} is larger than the model's vocab_size {}; set vocab_size or use other data",
            path.string(), header.vocab_size, vocab_size);
    if (options.verify) check_shard_payload(header, bytes.subspan(header.offset), vocab_size, path.string());
    shard.first = dataset.num_tokens_;
    shard.count = static_cast<std::int64_t>(header.num_tokens);
    shard.offset = header.offset;
    shard.token_bytes = header.token_bytes;
    dataset.num_tokens_ += shard.count;
    dataset.fingerprint_ = mix_bits(dataset.fingerprint_ ^ fingerprint_of(*shard.file, header));
    dataset.shards_.push_back(std::move(shard));
  }
  return dataset;
}

void TokenDataset::read(std::int64_t begin, std::span<std::int64_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  require(begin >= 0 && count <= num_tokens_ && begin <= num_tokens_ - count,
          "{}: tokens [{}, {}) are outside the split's {}", name_, begin, begin + count, num_tokens_);
  // The last shard that starts at or before `begin`.
  auto shard = std::upper_bound(shards_.begin(), shards_.end(), begin,
                                [](std::int64_t at, const Shard& candidate) { return at < candidate.first; });
  if (shard != shards_.begin()) --shard;
  for (; !out.empty(); ++shard) {
    const std::int64_t skip = begin - shard->first;
    const auto part = out.first(
        static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(out.size()), shard->count - skip)));
    const auto bytes =
        shard->file->bytes().subspan(shard->offset + static_cast<std::size_t>(skip) * shard->token_bytes);
    shard->token_bytes == 2 ? copy_ids<std::uint16_t>(bytes, part) : copy_ids<std::uint32_t>(bytes, part);
    check_ids(*shard, skip, part);
    begin += static_cast<std::int64_t>(part.size());
    out = out.subspan(part.size());
  }
}

void TokenDataset::check_ids(const Shard& shard, std::int64_t first, std::span<const std::int64_t> ids) const {
  if (vocab_size_ == 0) return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] < vocab_size_, "{}: id {} at token {} is outside the vocabulary of {}", shard.file->path().string(),
            ids[i], first + static_cast<std::int64_t>(i), vocab_size_);
  }
}

}  // namespace satformer::data
