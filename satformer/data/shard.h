#pragma once
// Token shards: what is at the start of a file, and where its tokens lie. Little endian throughout; docs/data.md has
// the formats byte by byte. No torch here: these readers meet damaged files.
//
//   ours   64-byte header with checksums, then uint16 (vocab_size <= 65536) or uint32 ids
//   llm.c  256 int32 (20240520, 1, number of tokens, zeros), then uint16 ids; also modded-nanogpt's
//   raw    uint16 ids and nothing else; nanoGPT's, and the paper's preparation
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace satformer::data {

enum class ShardFormat { ours, llmc, raw };

struct ShardHeader {
  ShardFormat format = ShardFormat::ours;
  int token_bytes = 2;           // 2 or 4
  std::uint64_t vocab_size = 0;  // 0: the format does not say
  std::uint64_t num_tokens = 0;
  std::size_t offset = 0;         // bytes before the first token
  std::uint32_t payload_crc = 0;  // CRC-32 of the tokens' bytes; ours only
};

constexpr std::size_t kShardHeaderBytes = 64;
constexpr std::size_t kLlmcHeaderBytes = 1024;
constexpr std::size_t kShardHeadBytes = kLlmcHeaderBytes;  // as much of a file as parse_shard_header wants to see

// `head` is the first min(kShardHeadBytes, file_bytes) bytes. Which format it is:
//   - at least 5 of the first 8 bytes (all of a shorter file's, up to 5) are those of our magic: ours, and it must be
//     without fault;
//   - the first int32 is 20240520, or it is not 0 and the 253 int32 from the fourth on are all 0: a header of llm.c's
//     kind, which must be the known one;
//   - else raw.
// Error names the file and what is wrong: empty, truncated, odd byte count, magic, version, header checksum.
ShardHeader parse_shard_header(std::span<const std::byte> head, std::uint64_t file_bytes, const std::string& file);

// The header of a shard of ours.
std::array<std::byte, kShardHeaderBytes> format_shard_header(const ShardHeader& header);

constexpr int token_bytes_for(std::uint64_t vocab_size) { return vocab_size <= 65536 ? 2 : 4; }

}  // namespace satformer::data
