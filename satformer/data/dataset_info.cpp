// dataset.json, which `prepare` leaves beside its shards.
#include <nlohmann/json.hpp>

#include "satformer/core/error.h"
#include "satformer/core/sealed_json.h"
#include "satformer/data/token_dataset.h"

namespace satformer::data {
namespace {

using nlohmann::json;
constexpr const char* kFileName = "dataset.json";
constexpr const char* kTokenizerFile = "tokenizer.model";

json to_json(const SplitInfo& split) {
  return {{"documents", split.documents}, {"tokens", split.tokens}, {"bytes", split.bytes}};
}

SplitInfo split_from_json(const json& value) {
  return {value.at("documents").get<std::int64_t>(), value.at("tokens").get<std::int64_t>(),
          value.at("bytes").get<std::int64_t>()};
}

}  // namespace

std::optional<DatasetInfo> read_dataset_info(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kFileName;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string text = unseal_json(read_file(path, 1 << 20), path.string());
  try {
    const json value = json::parse(text);
    DatasetInfo info;
    info.vocab_size = value.at("vocab_size").get<std::int64_t>();
    info.end_of_text_id = value.at("end_of_text_id").get<std::int64_t>();
    info.tokenizer_crc32 = value.at("tokenizer_crc32").get<std::string>();
    info.train = split_from_json(value.at("train"));
    info.val = split_from_json(value.at("val"));
    return info;
  } catch (const json::exception&) {
    fail("{}: not what `satformer prepare` writes; prepare the data again", path.string());
  }
}

void write_dataset_info(const std::filesystem::path& directory, const DatasetInfo& info) {
  const json value = {{"vocab_size", info.vocab_size},
                      {"end_of_text_id", info.end_of_text_id},
                      {"tokenizer_crc32", info.tokenizer_crc32},
                      {"train", to_json(info.train)},
                      {"val", to_json(info.val)}};
  write_file_atomically(directory / kFileName, seal_json(value.dump(2) + "\n"));
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
