// Token shards of all three formats, by the header alone and as a dataset. The first byte chooses the vocabulary and
// whether the checksums of a shard of ours are put right, without which no change would get past them.
#include "satformer/data/shard.h"

#include <array>
#include <cstring>
#include <vector>

#include "satformer/data/shard_check.h"
#include "satformer/data/token_dataset.h"
#include "satformer/io/files.h"
#include "tests/fuzz/fuzz.h"

using namespace satformer;
using namespace satformer::fuzzing;

namespace {

constexpr std::string_view kMagic = "SATSHRD1";

void put_checksums_right(std::string& shard) {
  if (shard.size() < data::kShardHeaderBytes || !shard.starts_with(kMagic)) return;
  const auto bytes = std::as_bytes(std::span(shard));
  const std::uint32_t payload = crc32_of(bytes.subspan(data::kShardHeaderBytes));
  std::memcpy(shard.data() + 32, &payload, sizeof(payload));
  const std::uint32_t header = crc32_of(bytes.first(60));
  std::memcpy(shard.data() + 60, &header, sizeof(header));
}

void expect_same(const data::ShardHeader& a, const data::ShardHeader& b) {
  expect(a.format == b.format && a.token_bytes == b.token_bytes && a.vocab_size == b.vocab_size &&
             a.num_tokens == b.num_tokens && a.offset == b.offset && a.payload_crc == b.payload_crc,
         "a header survives being written and read");
}

void expect_tokens(const ScratchFile& scratch, const data::ShardHeader& header, std::string_view payload,
                   std::int64_t vocab_size) {
  const auto dataset = data::TokenDataset::open(scratch.folder(), "train", {.vocab_size = vocab_size});
  std::vector<std::int64_t> ids(static_cast<std::size_t>(dataset.num_tokens()));
  expect(ids.size() == header.num_tokens, "a dataset has the header's tokens");
  dataset.read(0, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::uint32_t id = 0;
    const auto width = static_cast<std::size_t>(header.token_bytes);
    std::memcpy(&id, payload.data() + i * width, width);
    expect(ids[i] == id, "a token is the file's");
    expect(vocab_size == 0 || ids[i] < vocab_size, "a token lies in the vocabulary");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ScratchFile scratch("train_000000.bin");
  if (size == 0) return 0;
  constexpr std::array<std::int64_t, 4> kVocabSizes{0, 8, 50257, std::int64_t{1} << 33};
  const std::int64_t vocab_size = kVocabSizes[(data[0] >> 1) % kVocabSizes.size()];
  std::string shard(bytes_of(data, size).substr(1));
  if ((data[0] & 1) != 0) put_checksums_right(shard);
  scratch.write(shard);

  const AllocationLimit limit(32 * size + (std::size_t{1} << 20));
  const std::string source = scratch.path().string();
  const auto bytes = std::as_bytes(std::span(shard));
  accepts(source, [&] {
    const auto head = bytes.first(std::min(bytes.size(), data::kShardHeadBytes));
    const data::ShardHeader header = data::parse_shard_header(head, bytes.size(), source);
    expect(header.offset + header.num_tokens * static_cast<std::uint64_t>(header.token_bytes) == bytes.size(),
           "the tokens fill the file");
    if (header.format == data::ShardFormat::ours) {
      std::string written = shard;
      const auto head_again = data::format_shard_header(header);
      std::memcpy(written.data(), head_again.data(), head_again.size());
      expect_same(header,
                  data::parse_shard_header(std::as_bytes(std::span(written)).first(head.size()), bytes.size(), source));
    }
    data::check_shard_payload(header, bytes.subspan(header.offset), static_cast<std::uint64_t>(vocab_size), source);
    expect_tokens(scratch, header, std::string_view(shard).substr(header.offset), vocab_size);
  });
  return 0;
}
