#include "satformer/data/shard_check.h"

#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer::data {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 22;

struct ChunkResult {
  std::uint32_t crc = 0;
  std::uint32_t largest_id = 0;
};

template <typename Id>
std::uint32_t largest(std::span<const std::byte> bytes) {
  Id result = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Id)) {
    Id id;
    std::memcpy(&id, bytes.data() + at, sizeof(Id));
    result = std::max(result, id);
  }
  return result;
}

template <typename Id>
std::size_t first_at_least(std::span<const std::byte> bytes, std::uint64_t bound) {
  std::size_t index = 0;
  for (Id id; index < bytes.size() / sizeof(Id); ++index) {
    std::memcpy(&id, bytes.data() + index * sizeof(Id), sizeof(Id));
    if (id >= bound) break;
  }
  return index;
}

std::vector<ChunkResult> scan(const ShardHeader& header, std::span<const std::byte> payload) {
  std::vector<ChunkResult> results((payload.size() + kChunkBytes - 1) / kChunkBytes);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < results.size(); i = next++) {
      const std::size_t begin = i * kChunkBytes;
      const auto chunk = payload.subspan(begin, std::min(kChunkBytes, payload.size() - begin));
      if (header.format == ShardFormat::ours) results[i].crc = crc32_of(chunk);
      results[i].largest_id = header.token_bytes == 2 ? largest<std::uint16_t>(chunk) : largest<std::uint32_t>(chunk);
    }
  };
  const std::size_t threads = std::min<std::size_t>(results.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();  // joins
  return results;
}

[[noreturn]] void fail_id(const ShardHeader& header, std::span<const std::byte> payload, std::size_t chunk,
                          std::uint64_t bound, const std::string& file) {
  const std::size_t begin = chunk * kChunkBytes;
  const auto bytes = payload.subspan(begin);
  const auto width = static_cast<std::size_t>(header.token_bytes);
  const std::size_t index = begin / width + (width == 2 ? first_at_least<std::uint16_t>(bytes, bound)
                                                        : first_at_least<std::uint32_t>(bytes, bound));
  std::uint32_t id = 0;
  std::memcpy(&id, payload.data() + index * width, width);
  fail("{}: id {} at token {} is outside the vocabulary of {}; the shard belongs to another tokenizer or is damaged",
       file, id, index, bound);
}

}  // namespace

void check_shard_payload(const ShardHeader& header, std::span<const std::byte> payload, std::uint64_t vocab_size,
                         const std::string& file) {
  const std::vector<ChunkResult> chunks = scan(header, payload);
  if (header.format == ShardFormat::ours) {
    std::uint32_t crc = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const std::size_t bytes = std::min(kChunkBytes, payload.size() - i * kChunkBytes);
      crc = static_cast<std::uint32_t>(crc32_combine(crc, chunks[i].crc, static_cast<z_off_t>(bytes)));
    }
    require(crc == header.payload_crc, "{}: checksum of the tokens does not match: the shard is damaged; make it again",
            file);
  }
  std::uint64_t bound = vocab_size;
  if (header.vocab_size > 0 && (bound == 0 || header.vocab_size < bound)) bound = header.vocab_size;
  if (bound == 0) return;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].largest_id >= bound) fail_id(header, payload, i, bound, file);
  }
}

}  // namespace satformer::data
