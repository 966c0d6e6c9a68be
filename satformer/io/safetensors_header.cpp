#include "satformer/io/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/io/strict_json.h"

namespace satformer {

namespace {

struct TypeRow {
  SafetensorsType type;
  std::string_view name;
  std::uint64_t bytes;
};

// In the order of the enumeration.
constexpr std::array<TypeRow, 11> kTypes{{{SafetensorsType::f64, "F64", 8},
                                          {SafetensorsType::f32, "F32", 4},
                                          {SafetensorsType::f16, "F16", 2},
                                          {SafetensorsType::bf16, "BF16", 2},
                                          {SafetensorsType::i64, "I64", 8},
                                          {SafetensorsType::i32, "I32", 4},
                                          {SafetensorsType::i16, "I16", 2},
                                          {SafetensorsType::i8, "I8", 1},
                                          {SafetensorsType::u16, "U16", 2},
                                          {SafetensorsType::u8, "U8", 1},
                                          {SafetensorsType::boolean, "BOOL", 1}}};

const TypeRow& row_of(SafetensorsType type) { return kTypes.at(static_cast<std::size_t>(type)); }

void require_unique_names(const SafetensorsHeader& header, const std::string& source) {
  std::vector<std::string_view> names;
  names.reserve(header.entries.size());
  for (const SafetensorsEntry& entry : header.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail("{}: tensor {} appears twice", source, in_quotes(*twice));
}

// Bytes of a tensor. Zero dimensions count as one in the overflow check, because strides multiply the others.
std::uint64_t bytes_of(const SafetensorsEntry& entry, const std::string& source) {
  std::int64_t product = static_cast<std::int64_t>(item_size(entry.type));
  bool overflow = false;
  for (const std::int64_t size : entry.shape) {
    overflow = overflow || __builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product);
  }
  if (overflow) fail("{}: tensor {}: a shape of more than 2^63 bytes", source, in_quotes(entry.name));
  const bool empty = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
  return empty ? 0 : static_cast<std::uint64_t>(product);
}

void check_layout(const SafetensorsHeader& header, std::uint64_t data_size, const std::string& source) {
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    const auto where = [&] { return fmt::format("{}: tensor {}", source, in_quotes(entry.name)); };
    if (entry.begin > entry.end || entry.end > data_size) {
      fail("{}: data_offsets [{}, {}] lie outside the {} bytes of data; the file may be truncated", where(),
           entry.begin, entry.end, data_size);
    }
    if (entry.begin != position) {
      fail("{}: its data begin at {}, expected {} (a gap or an overlap)", where(), entry.begin, position);
    }
    const std::uint64_t bytes = bytes_of(entry, source);
    if (entry.end - entry.begin != bytes) {
      fail("{}: dtype {} and shape [{}] need {} bytes, data_offsets hold {}", where(), dtype_name(entry.type),
           fmt::join(entry.shape, ", "), bytes, entry.end - entry.begin);
    }
    position = entry.end;
  }
  require(position == data_size, "{}: {} bytes of data, but the tensors end at {}", source, data_size, position);
}

std::string json_text(const nlohmann::json& value, const std::string& source) {
  try {
    return value.dump();
  } catch (const nlohmann::json::exception&) {
    fail("cannot write {}: names and metadata must be UTF-8, got {}", source, shortened(value));
  }
}

}  // namespace

std::uint64_t item_size(SafetensorsType type) { return row_of(type).bytes; }

std::string_view dtype_name(SafetensorsType type) { return row_of(type).name; }

std::optional<SafetensorsType> dtype_from_name(std::string_view name) {
  const auto* row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& r) { return r.name == name; });
  return row == kTypes.end() ? std::nullopt : std::optional(row->type);
}

std::string dtype_names() {
  std::string names;
  for (const TypeRow& row : kTypes) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

std::uint64_t safetensors_header_length(std::span<const std::byte> prefix, std::uint64_t file_size,
                                        const std::string& source) {
  require(prefix.size() >= kSafetensorsPrefixBytes && file_size >= kSafetensorsPrefixBytes,
          "{}: {} bytes are too few for a safetensors file", source, file_size);
  std::uint64_t length = 0;
  for (std::size_t i = kSafetensorsPrefixBytes; i-- > 0;) {
    length = (length << 8) | std::to_integer<std::uint64_t>(prefix[i]);
  }
  require(length <= kSafetensorsMaxHeaderBytes, "{}: a header of {} bytes, allowed are {}; this is no safetensors file",
          source, length, kSafetensorsMaxHeaderBytes);
  require(length <= file_size - kSafetensorsPrefixBytes,
          "{}: a header of {} bytes in a file of {}; the file is truncated", source, length, file_size);
  return length;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_size, const std::string& source) {
  SafetensorsHeader header = read_safetensors_json(json, source);
  require_unique_names(header, source);
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  check_layout(header, data_size, source);
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header, const std::string& source) {
  std::string json = "{";
  const auto begin_key = [&](const std::string& name) {
    json += fmt::format("{}{}:", json.size() > 1 ? "," : "", json_text(name, source));
  };
  if (!header.metadata.empty()) {
    begin_key(std::string(kMetadataKey));
    json += json_text(header.metadata, source);
  }
  for (const SafetensorsEntry& entry : header.entries) {
    require(entry.name != kMetadataKey, "cannot write {}: no tensor can be named {}", source, kMetadataKey);
    begin_key(entry.name);
    json += fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", dtype_name(entry.type),
                        fmt::join(entry.shape, ","), entry.begin, entry.end);
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  require(json.size() <= kSafetensorsMaxHeaderBytes, "cannot write {}: a header of {} bytes, allowed are {}", source,
          json.size(), kSafetensorsMaxHeaderBytes);
  std::string prefix(kSafetensorsPrefixBytes, '\0');
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    prefix[i] = static_cast<char>(static_cast<std::uint64_t>(json.size()) >> (8 * i));
  }
  return prefix + json;
}

}  // namespace satformer
