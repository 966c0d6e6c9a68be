// dataset.json, which `prepare` leaves beside its shards.
#include <nlohmann/json.hpp>

#include "satformer/core/error.h"
#include "satformer/data/token_dataset.h"
#include "satformer/io/files.h"
#include "satformer/io/json_fields.h"
#include "satformer/io/sealed_json.h"
#include "satformer/io/strict_json.h"

namespace satformer::data {
namespace {

using nlohmann::json;
constexpr const char* kFileName = "dataset.json";
constexpr std::uint64_t kMaxBytes = 1 << 20;
constexpr const char* kTokenizerFile = "tokenizer.model";

json to_json(const SplitInfo& split) {
  return {{"documents", split.documents}, {"tokens", split.tokens}, {"bytes", split.bytes}};
}

SplitInfo split_from_json(const JsonFields& fields) {
  return {fields.integer("documents"), fields.integer("tokens"), fields.integer("bytes")};
}

}  // namespace

DatasetInfo parse_dataset_info(const std::string& text, const std::string& source) {
  const json value = parse_strict_json(text, source);
  const JsonFields fields(value, source);
  DatasetInfo info;
  info.vocab_size = fields.integer("vocab_size");
  info.end_of_text_id = fields.integer("end_of_text_id");
  info.tokenizer_crc32 = fields.text("tokenizer_crc32");
  info.train = split_from_json(fields.object("train"));
  info.val = split_from_json(fields.object("val"));
  return info;
}

std::string format_dataset_info(const DatasetInfo& info) {
  const json value = {{"vocab_size", info.vocab_size},
                      {"end_of_text_id", info.end_of_text_id},
                      {"tokenizer_crc32", info.tokenizer_crc32},
                      {"train", to_json(info.train)},
                      {"val", to_json(info.val)}};
  return value.dump(2) + "\n";
}

std::optional<DatasetInfo> read_dataset_info(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kFileName;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return parse_dataset_info(unseal_json(read_file(path, kMaxBytes), path.string()), path.string());
}

void write_dataset_info(const std::filesystem::path& directory, const DatasetInfo& info) {
  write_file_atomically(directory / kFileName, seal_json(format_dataset_info(info)));
}

std::optional<std::filesystem::path> find_tokenizer(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kTokenizerFile;
  if (!std::filesystem::exists(path)) return std::nullopt;
  if (const auto info = read_dataset_info(directory)) {
    const std::string crc = fmt::format("{:08x}", crc32_of_file(path));
    require(crc == info->tokenizer_crc32,
            "{}: damaged, or another than the shards' tokenizer: CRC-32 is {}, expected {} ({})", path.string(), crc,
            info->tokenizer_crc32, kFileName);
  }
  return path;
}

}  // namespace satformer::data
