#pragma once
// The header of the safetensors format, read from bytes that nobody vouches for and written. No torch in here, so
// that a fuzzer can take it alone. Format: see safetensors.h.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace satformer {

enum class SafetensorsType { f64, f32, f16, bf16, i64, i32, i16, i8, u16, u8, boolean };

struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::f32;
  std::vector<std::int64_t> shape;  // [] for a scalar
  std::uint64_t begin = 0;          // bytes, counted from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kSafetensorsPrefixBytes = 8;  // u64, little endian: the header's length
constexpr std::uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;

std::uint64_t item_size(SafetensorsType type);      // bytes
std::string_view dtype_name(SafetensorsType type);  // "F32"
std::optional<SafetensorsType> dtype_from_name(std::string_view name);
std::string dtype_names();  // all of them, for an error

// The header's length, from a file's first bytes (fewer than 8 when the file is shorter). It fits `file_size`.
std::uint64_t safetensors_header_length(std::span<const std::byte> prefix, std::uint64_t file_size,
                                        const std::string& source);

// Checks and reads the JSON header; `data_size` is the number of bytes after it. On success the entries cover these
// without gap or overlap, every size is that of dtype and shape, no dimension or stride overflows int64.
// Memory used: a small multiple of the header's length. Errors name `source` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_size, const std::string& source);

// The first half of the above: what the JSON says, in its order; whether the numbers fit the data is not checked yet.
SafetensorsHeader read_safetensors_json(std::string_view json, const std::string& source);

// The length prefix and the header, padded with spaces so that the data start at a multiple of 8.
std::string format_safetensors_header(const SafetensorsHeader& header, const std::string& source);

}  // namespace satformer
