#include "satformer/data/shard.h"

#include <cstring>

#include "satformer/data/shard_writer.h"
#include "satformer/data/token_dataset.h"
#include "satformer/io/sealed_json.h"
#include "tests/satformer/data/support.h"

#include "tests/catch.h"

namespace satformer::data {
namespace {

using testing::contains;
using testing::error_of;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;
using Ids = std::vector<std::int32_t>;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string llmc_file(std::int32_t magic, std::int32_t version, std::int32_t count,
                      const std::vector<std::uint16_t>& ids) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header) + bytes_of(ids);
}

void write_shards(const std::filesystem::path& folder, const std::string& prefix, const Ids& ids,
                  std::int64_t vocab_size, std::int64_t shard_tokens = 1'000'000) {
  SplitWriter writer(folder, prefix, vocab_size, shard_tokens);
  // In parts, as prepare does.
  for (std::size_t at = 0; at < ids.size(); at += 7) {
    writer.write(std::span(ids).subspan(at, std::min<std::size_t>(7, ids.size() - at)));
  }
  writer.finish();
}

Ids some_ids(std::size_t count, std::int32_t vocab_size) {
  std::mt19937_64 random(count);
  Ids ids(count);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab_size));
  return ids;
}

std::vector<std::int64_t> all_of(const TokenDataset& dataset) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(dataset.num_tokens()));
  dataset.read(0, ids);
  return ids;
}

// The error of opening a folder that holds just this shard.
std::string error_for(const std::string& contents, const DatasetOptions& options = {}) {
  const TemporaryFolder folder;
  write_text(folder / "train_0.bin", contents);
  return error_of([&] { TokenDataset::open(folder.path(), "train", options); });
}

std::string our_file(const Ids& ids, std::int64_t vocab_size) {
  const TemporaryFolder folder;
  write_shards(folder.path(), "train", ids, vocab_size);
  return read_text(folder / "train_000000.bin");
}

}  // namespace

TEST_CASE("Shards come back, in both widths and across files", "[data][shard]") {
  for (const std::int64_t vocab_size : {300, 65536, 65537, 200'000}) {
    const TemporaryFolder folder;
    const Ids ids = some_ids(1000, static_cast<std::int32_t>(vocab_size));
    write_shards(folder.path(), "train", ids, vocab_size, 99);
    write_text(folder / "val_000000.bin", "not looked at");
    const TokenDataset dataset = TokenDataset::open(folder.path(), "train", {.vocab_size = vocab_size, .verify = true});
    CHECK(dataset.num_shards() == 11);
    CHECK(all_of(dataset) == std::vector<std::int64_t>(ids.begin(), ids.end()));
    const std::size_t width = vocab_size <= 65536 ? 2 : 4;
    CHECK(std::filesystem::file_size(folder / "train_000000.bin") == 64 + 99 * width);
    CHECK(std::filesystem::file_size(folder / "train_000010.bin") == 64 + 10 * width);
    for (const std::int64_t begin : {0, 98, 99, 500, 900}) {
      std::vector<std::int64_t> part(100);
      dataset.read(begin, part);
      CHECK(std::equal(part.begin(), part.end(), ids.begin() + begin));
    }
  }
}

TEST_CASE("Reading beyond a split is an error", "[data][shard]") {
  const TemporaryFolder folder;
  write_shards(folder.path(), "train", some_ids(10, 300), 300);
  const TokenDataset dataset = TokenDataset::open(folder.path(), "train", {});
  std::vector<std::int64_t> out(4);
  dataset.read(6, out);
  dataset.read(10, std::span(out).first(0));
  CHECK(contains(error_of([&] { dataset.read(7, out); }), "tokens [7, 11) are outside the split's 10"));
  CHECK(contains(error_of([&] { dataset.read(-1, out); }), "outside"));
}

TEST_CASE("The header's bytes are those of the format", "[data][shard]") {
  const std::string file = our_file({1, 2, 299}, 300);
  CHECK(file.size() == 64 + 6);
  CHECK(file.substr(0, 8) == "SATSHRD1");
  CHECK(bytes_of(std::vector<std::uint32_t>{1, 2}) == file.substr(8, 8));
  CHECK(bytes_of(std::vector<std::uint64_t>{300, 3}) == file.substr(16, 16));
  CHECK(file.substr(36, 24) == std::string(24, '\0'));
  CHECK(bytes_of(std::vector<std::uint16_t>{1, 2, 299}) == file.substr(64));
  // zlib's CRC-32 of those six bytes, computed elsewhere.
  CHECK(bytes_of(std::vector<std::uint32_t>{0xd1e07772u}) == file.substr(32, 4));
}

TEST_CASE("Every flipped byte of our shards is found", "[data][shard]") {
  for (const std::int64_t vocab_size : {300, 70'000}) {
    const std::string whole = our_file(some_ids(5000, static_cast<std::int32_t>(vocab_size)), vocab_size);
    CHECK(error_for(whole).empty());
    std::mt19937_64 random(3);
    int missed = 0;
    for (int i = 0; i < 64 + 300; ++i) {
      std::string damaged = whole;
      const std::size_t at = i < 64 ? static_cast<std::size_t>(i) : 64 + random() % (whole.size() - 64);
      damaged[at] = static_cast<char>(damaged[at] ^ (1 + random() % 255));
      missed += error_for(damaged).empty();
    }
    CHECK(missed == 0);
  }
}

TEST_CASE("A cut or lengthened shard of ours is rejected", "[data][shard]") {
  const std::string whole = our_file(some_ids(50, 300), 300);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string error = error_for(whole.substr(0, length));
    INFO(length << ": " << error);
    CHECK(contains(error, "train_0.bin: "));
    if (length >= 8) CHECK(contains(error, "truncated shard"));
  }
  CHECK(contains(error_for(whole + std::string(2, '\0')), "too long a shard"));
  CHECK(contains(error_for(whole + "x"), "too long a shard"));
}

TEST_CASE("Damaged headers of ours say what is wrong", "[data][shard]") {
  const std::string whole = our_file({1, 2, 3}, 300);
  std::string magic = whole;
  magic[7] = '2';
  CHECK(contains(error_for(magic), "train_0.bin: wrong magic"));
  std::string checksum = whole;
  checksum[40] = 1;
  CHECK(contains(error_for(checksum), "header checksum does not match"));
  std::string payload = whole;
  payload[65] = 1;
  CHECK(contains(error_for(payload), "checksum of the tokens does not match"));
  CHECK(error_for(payload, {.vocab_size = 0, .verify = false}).empty());
}

TEST_CASE("llm.c's headered shards are read", "[data][shard]") {
  const std::vector<std::uint16_t> ids{7, 50256, 0, 65535};
  const std::string good = llmc_file(20240520, 1, 4, ids);
  const TemporaryFolder folder;
  write_text(folder / "fineweb_train_000001.bin", good);
  const TokenDataset dataset = TokenDataset::open(folder.path(), "fineweb_train", {});
  CHECK(all_of(dataset) == std::vector<std::int64_t>{7, 50256, 0, 65535});
  CHECK(contains(error_for(llmc_file(20240520, 1, 5, ids)), "truncated shard: its header promises 5 tokens"));
  CHECK(contains(error_for(llmc_file(20240520, 1, 3, ids)), "too long a shard"));
  CHECK(contains(error_for(llmc_file(20240520, 1, -4, ids)), "-4 tokens"));
  CHECK(contains(error_for(llmc_file(20240520, 1, 0, {})), "holds no tokens"));
  CHECK(contains(error_for(llmc_file(20240520, 2, 4, ids)), "magic 20240520 with version 2"));
  CHECK(contains(error_for(llmc_file(20240521, 1, 4, ids)), "wrong magic 20240521"));
  CHECK(contains(error_for(llmc_file(20240801, 7, 4, ids)), "wrong magic 20240801"));
  CHECK(contains(error_for(good.substr(0, good.size() - 1)), "truncated shard"));
  CHECK(contains(error_for(good.substr(0, 700)), "truncated shard: 700 bytes"));
  for (std::size_t at = 0; at < 12; ++at) {  // no damage to the header's words turns it into a raw shard
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    CHECK_FALSE(error_for(damaged).empty());
  }
}

TEST_CASE("Raw uint16 shards are read", "[data][shard]") {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> ids{1, 50256, 3, 4};
  write_text(folder / "train.bin", bytes_of(ids));
  CHECK(all_of(TokenDataset::open(folder.path(), "train", {.vocab_size = 50257, .verify = true})) ==
        std::vector<std::int64_t>{1, 50256, 3, 4});
  CHECK(all_of(TokenDataset::open(folder.path(), "train", {})).size() == 4);
  CHECK(contains(error_for(bytes_of(ids) + "x"), "odd byte count 9"));
  CHECK(contains(error_for(""), "empty file"));
  CHECK(error_for(bytes_of(std::vector<std::uint16_t>(2000, 0))).empty());  // zeros alone are no header
}

TEST_CASE("Ids beyond the vocabulary are found with their place", "[data][shard]") {
  std::vector<std::uint16_t> ids(6'000'000, 5);  // several chunks of the parallel check
  ids[5'000'001] = 400;
  ids[5'900'000] = 500;
  const TemporaryFolder folder;
  write_text(folder / "train_1.bin", bytes_of(ids));
  const auto open = [&](bool verify) {
    return TokenDataset::open(folder.path(), "train", {.vocab_size = 400, .verify = verify});
  };
  CHECK(
      contains(error_of([&] { open(true); }), "train_1.bin: id 400 at token 5000001 is outside the vocabulary of 400"));
  const TokenDataset unchecked = open(false);
  std::vector<std::int64_t> out(100);
  unchecked.read(0, out);
  CHECK(contains(error_of([&] { unchecked.read(4'999'990, out); }), "id 400 at token 5000001"));
}

TEST_CASE("A shard of a larger vocabulary is refused", "[data][shard]") {
  const std::string file = our_file({1, 2, 3}, 300);
  CHECK(error_for(file, {.vocab_size = 300, .verify = true}).empty());
  CHECK(error_for(file, {.vocab_size = 512, .verify = true}).empty());  // a padded model
  CHECK(contains(error_for(file, {.vocab_size = 299, .verify = true}),
                 "its vocabulary of 300 is larger than the model's vocab_size 299"));
}

TEST_CASE("What is missing is named", "[data][shard]") {
  const TemporaryFolder folder;
  CHECK(contains(error_of([&] { TokenDataset::open(folder / "absent", "train", {}); }), "absent: no such folder"));
  CHECK(contains(error_of([&] { TokenDataset::open(folder.path(), "train", {}); }), "no shard train*.bin"));
}

TEST_CASE("Any start of a file gives a header that fits it, or an error", "[data][shard]") {
  const std::string ours = our_file({1, 2, 3}, 300), llmc = llmc_file(20240520, 1, 2, {1, 2});
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string head = i % 3 == 0 ? ours : i % 3 == 1 ? llmc : std::string(random() % 1100, '\0');
    for (std::uint64_t flips = random() % 4; flips > 0 && !head.empty(); --flips) {
      head[random() % std::min<std::size_t>(head.size(), 64)] = static_cast<char>(random());
    }
    const std::uint64_t file_bytes = head.size() + (random() % 2 == 0 ? 0 : random() % 5000);
    head.resize(std::min<std::uint64_t>(file_bytes, kShardHeadBytes));
    ShardHeader header;
    const std::string error =
        error_of([&] { header = parse_shard_header(std::as_bytes(std::span(head)), file_bytes, "a.bin"); });
    if (!error.empty()) {
      REQUIRE(contains(error, "a.bin: "));
    } else {
      REQUIRE(header.offset + header.num_tokens * static_cast<std::uint64_t>(header.token_bytes) == file_bytes);
    }
  }
}

TEST_CASE("The fingerprint follows names, sizes and contents", "[data][shard]") {
  const auto fingerprint = [](const std::string& name, const std::string& contents) {
    const TemporaryFolder folder;
    write_text(folder / name, contents);
    return TokenDataset::open(folder.path(), "train", {}).fingerprint();
  };
  const std::string contents = bytes_of(std::vector<std::uint16_t>(50'000, 7));
  std::string changed = contents;
  changed.back() = 1;
  const auto original = fingerprint("train_0.bin", contents);
  CHECK(original == fingerprint("train_0.bin", contents));
  CHECK(original != fingerprint("train_1.bin", contents));
  CHECK(original != fingerprint("train_0.bin", contents + contents));
  CHECK(original != fingerprint("train_0.bin", changed));
  for (const std::size_t byte : {std::size_t{0}, contents.size() / 3, contents.size() - 1}) {  // anywhere
    std::string other = contents;
    other[byte] = static_cast<char>(other[byte] ^ 1);
    CHECK(original != fingerprint("train_0.bin", other));
  }
}

TEST_CASE("dataset.json comes back, and nothing else is taken for it", "[data][shard]") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_dataset_info(folder.path()).has_value());
  DatasetInfo info{.vocab_size = 300,
                   .end_of_text_id = 2,
                   .tokenizer_crc32 = "0123abcd",
                   .train = {9, 100, 400},
                   .val = {1, 10, 40}};
  write_dataset_info(folder.path(), info);
  const DatasetInfo back = read_dataset_info(folder.path()).value();
  CHECK(back.vocab_size == 300);
  CHECK(back.end_of_text_id == 2);
  CHECK(back.tokenizer_crc32 == "0123abcd");
  CHECK((back.train.documents == 9 && back.train.tokens == 100 && back.train.bytes == 400));
  CHECK((back.val.documents == 1 && back.val.tokens == 10 && back.val.bytes == 40));
  for (const std::string text : {"{}", "", "{\n", "[", "{\"vocab_size\": \"x\"}"}) {
    write_text(folder / "dataset.json", text);
    CHECK(contains(error_of([&] { read_dataset_info(folder.path()); }), "dataset.json: damaged"));
  }
  for (const auto& [text, fault] : {std::pair<std::string, std::string>("{\n\"\n", "dataset.json:2:"),
                                    {"{\n \"vocab_size\": \"x\"}", "dataset.json: vocab_size: expected "}}) {
    write_text(folder / "dataset.json", seal_json(text));
    CHECK(contains(error_of([&] { read_dataset_info(folder.path()); }), fault));
  }
}

}  // namespace satformer::data
