#include "satformer/data/shard.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer::data {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little endian and read in place");

constexpr std::string_view kMagic = "SATSHRD1";
constexpr std::uint32_t kVersion = 1;
constexpr std::int32_t kLlmcMagic = 20240520;
constexpr std::int32_t kLlmcVersion = 1;

// Offsets in our header. Bytes 36..59 are zero.
constexpr std::size_t kVersionAt = 8, kTokenBytesAt = 12, kVocabSizeAt = 16, kNumTokensAt = 24, kPayloadCrcAt = 32,
                      kHeaderCrcAt = 60;

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <typename T>
void store(std::span<std::byte> bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

// Any damage to a byte or two of the magic, or a cut within it, must not turn our shard into a raw one.
bool looks_like_ours(std::span<const std::byte> head) {
  const std::size_t compared = std::min(head.size(), kMagic.size());
  std::size_t same = 0;
  for (std::size_t i = 0; i < compared; ++i) same += static_cast<char>(head[i]) == kMagic[i];
  return same >= std::min<std::size_t>(compared, 5);
}

bool looks_like_llmc(std::span<const std::byte> head) {
  if (head.size() >= 4 && load<std::int32_t>(head, 0) == kLlmcMagic) return true;
  if (head.size() < kLlmcHeaderBytes || load<std::int32_t>(head, 0) == 0) return false;
  const auto unused = head.subspan(12, kLlmcHeaderBytes - 12);
  return std::all_of(unused.begin(), unused.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// The payload must be exactly num_tokens ids.
void check_length(const ShardHeader& header, std::uint64_t file_bytes, const std::string& file) {
  const std::uint64_t payload = file_bytes - header.offset;
  const auto token_bytes = static_cast<std::uint64_t>(header.token_bytes);
  require(header.num_tokens > 0, "{}: the shard holds no tokens; remove it or make it again", file);
  require(payload % token_bytes == 0 && payload / token_bytes == header.num_tokens,
          "{}: {}: its header promises {} tokens of {} bytes, the file holds {} bytes after the header; make or get "
          "the file again",
          file, payload / token_bytes < header.num_tokens ? "truncated shard" : "too long a shard", header.num_tokens,
          token_bytes, payload);
}

ShardHeader parse_ours(std::span<const std::byte> head, std::uint64_t file_bytes, const std::string& file) {
  require(file_bytes >= kShardHeaderBytes, "{}: truncated shard: {} bytes, its header alone has {}", file, file_bytes,
          kShardHeaderBytes);
  require(std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0,
          "{}: wrong magic: close to '{}' but not the same, a damaged header; make the shard again", file, kMagic);
  require(load<std::uint32_t>(head, kHeaderCrcAt) == crc32_of(head.first(kHeaderCrcAt)),
          "{}: header checksum does not match: the shard is damaged; make it again", file);
  const auto version = load<std::uint32_t>(head, kVersionAt);
  require(version == kVersion, "{}: shard version {}, this program reads version {}", file, version, kVersion);
  const auto token_bytes = load<std::uint32_t>(head, kTokenBytesAt);
  require(token_bytes == 2 || token_bytes == 4, "{}: {} bytes a token, expected 2 or 4", file, token_bytes);
  ShardHeader header;
  header.token_bytes = static_cast<int>(token_bytes);
  header.vocab_size = load<std::uint64_t>(head, kVocabSizeAt);
  header.num_tokens = load<std::uint64_t>(head, kNumTokensAt);
  header.payload_crc = load<std::uint32_t>(head, kPayloadCrcAt);
  header.offset = kShardHeaderBytes;
  check_length(header, file_bytes, file);
  return header;
}

ShardHeader parse_llmc(std::span<const std::byte> head, std::uint64_t file_bytes, const std::string& file) {
  require(file_bytes >= kLlmcHeaderBytes, "{}: truncated shard: {} bytes, its header alone has {}", file, file_bytes,
          kLlmcHeaderBytes);
  const auto magic = load<std::int32_t>(head, 0);
  const auto version = load<std::int32_t>(head, 4);
  const auto count = load<std::int32_t>(head, 8);
  require(magic == kLlmcMagic, "{}: wrong magic {}: a header of 256 int32 must begin with {}", file, magic, kLlmcMagic);
  require(version == kLlmcVersion, "{}: magic {} with version {}, this program reads version {} (uint16 ids)", file,
          magic, version, kLlmcVersion);
  require(count >= 0, "{}: its header gives {} tokens; the shard is damaged", file, count);
  ShardHeader header;
  header.format = ShardFormat::llmc;
  header.num_tokens = static_cast<std::uint64_t>(count);
  header.offset = kLlmcHeaderBytes;
  check_length(header, file_bytes, file);
  return header;
}

ShardHeader parse_raw(std::uint64_t file_bytes, const std::string& file) {
  require(file_bytes % 2 == 0,
          "{}: odd byte count {}: without a header a shard is uint16 ids; it is truncated or no shard", file,
          file_bytes);
  ShardHeader header;
  header.format = ShardFormat::raw;
  header.num_tokens = file_bytes / 2;
  return header;
}

}  // namespace

ShardHeader parse_shard_header(std::span<const std::byte> head, std::uint64_t file_bytes, const std::string& file) {
  require(file_bytes > 0, "{}: empty file, no shard", file);
  require(head.size() == std::min<std::uint64_t>(file_bytes, kShardHeadBytes),
          "{}: {} bytes of the file's start were given, {} are needed", file, head.size(),
          std::min<std::uint64_t>(file_bytes, kShardHeadBytes));
  if (looks_like_ours(head)) return parse_ours(head, file_bytes, file);
  if (looks_like_llmc(head)) return parse_llmc(head, file_bytes, file);
  return parse_raw(file_bytes, file);
}

std::array<std::byte, kShardHeaderBytes> format_shard_header(const ShardHeader& header) {
  std::array<std::byte, kShardHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  store<std::uint32_t>(bytes, kVersionAt, kVersion);
  store<std::uint32_t>(bytes, kTokenBytesAt, static_cast<std::uint32_t>(header.token_bytes));
  store<std::uint64_t>(bytes, kVocabSizeAt, header.vocab_size);
  store<std::uint64_t>(bytes, kNumTokensAt, header.num_tokens);
  store<std::uint32_t>(bytes, kPayloadCrcAt, header.payload_crc);
  store<std::uint32_t>(bytes, kHeaderCrcAt, crc32_of(std::span(bytes).first(kHeaderCrcAt)));
  return bytes;
}

}  // namespace satformer::data
