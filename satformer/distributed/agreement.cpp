#include "satformer/distributed/agreement.h"

#include <ATen/ops/tensor.h>

#include <map>
#include <optional>
#include <span>

#include "satformer/core/error.h"
#include "satformer/io/files.h"

namespace satformer::distributed {
namespace {

struct Difference {
  int rank, reference;  // one that differs, and one to compare it with
};

// Values by rank.
template <typename Value>
std::optional<Difference> find_difference(const std::vector<Value>& values) {
  std::map<Value, int> counts;
  for (const Value& value : values) ++counts[value];
  if (counts.size() == 1) return std::nullopt;
  std::size_t reference = 0;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    if (2 * counts[values[rank]] > static_cast<int>(values.size())) {
      reference = rank;
      break;
    }
  }
  std::size_t rank = 0;
  while (values[rank] == values[reference]) ++rank;
  return Difference{static_cast<int>(rank), static_cast<int>(reference)};
}

std::string dump(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// "RANK'S VALUE, expected VALUE", within objects with the key.
std::string describe(const nlohmann::json& own, const nlohmann::json& expected) {
  if (!own.is_object() || !expected.is_object()) return fmt::format("{}, expected {}", dump(own), dump(expected));
  const std::string path = nlohmann::json::diff(expected, own).at(0).at("path");
  const nlohmann::json::json_pointer pointer(path);
  const auto value = [&](const nlohmann::json& object) {
    return object.contains(pointer) ? object[pointer].dump() : std::string("nothing");
  };
  std::string key = path.substr(1);
  for (char& c : key) c = c == '/' ? '.' : c;
  return fmt::format("{} {}, expected {}", key, value(own), value(expected));
}

std::int64_t crc32_of_tensor(const at::Tensor& tensor) {
  const at::Tensor bytes = tensor.detach().cpu().contiguous();
  return crc32_of(std::as_bytes(std::span(static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes())));
}

}  // namespace

void require_agreement(World& world, const Facts& facts) {
  if (world.size() == 1) return;
  nlohmann::json values = nlohmann::json::array();
  for (const auto& [name, value] : facts) values.push_back(value);
  std::vector<nlohmann::json> by_rank;
  for (const std::string& text : world.all_gather_text(values.dump(), "the check that all ranks start alike")) {
    by_rank.push_back(nlohmann::json::parse(text));
  }
  for (std::size_t fact = 0; fact < facts.size(); ++fact) {
    std::vector<std::string> dumps;
    for (const nlohmann::json& rank : by_rank) dumps.push_back(rank.at(fact).dump());
    const auto difference = find_difference(dumps);
    if (!difference) continue;
    const auto value = [&](int rank) { return by_rank[static_cast<std::size_t>(rank)].at(fact); };
    fail("rank {} differs from rank {} in its {}: {}", difference->rank, difference->reference, facts[fact].first,
         describe(value(difference->rank), value(difference->reference)));
  }
}

void require_equal_tensors(World& world, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                           const std::string& when) {
  if (world.size() == 1) return;
  std::vector<std::int64_t> own;
  for (const auto& [name, tensor] : tensors) own.push_back(crc32_of_tensor(tensor));
  const at::Tensor all = world.all_gather(at::tensor(own, at::kLong), "the check that all ranks hold the same");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::vector<std::int64_t> sums;
    for (int rank = 0; rank < world.size(); ++rank) {
      sums.push_back(all[rank][static_cast<std::int64_t>(i)].item<std::int64_t>());
    }
    const auto difference = find_difference(sums);
    require(!difference, "rank {} differs from rank {} in {} {}", difference ? difference->rank : 0,
            difference ? difference->reference : 0, tensors[i].first, when);
  }
}

}  // namespace satformer::distributed
