#include "satformer/core/safetensors.h"

#include <ATen/ops/empty.h>
#include <fcntl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "satformer/core/atomic_file.h"
#include "satformer/core/error.h"
#include "satformer/core/file_descriptor.h"
#include "satformer/core/safetensors_header.h"
#include "satformer/core/strict_json.h"

namespace satformer {

namespace fs = std::filesystem;

namespace {

c10::ScalarType scalar_type_of(SafetensorsType type) {
  switch (type) {
    case SafetensorsType::f64:
      return c10::ScalarType::Double;
    case SafetensorsType::f32:
      return c10::ScalarType::Float;
    case SafetensorsType::f16:
      return c10::ScalarType::Half;
    case SafetensorsType::bf16:
      return c10::ScalarType::BFloat16;
    case SafetensorsType::i64:
      return c10::ScalarType::Long;
    case SafetensorsType::i32:
      return c10::ScalarType::Int;
    case SafetensorsType::i16:
      return c10::ScalarType::Short;
    case SafetensorsType::i8:
      return c10::ScalarType::Char;
    case SafetensorsType::u16:
      return c10::ScalarType::UInt16;
    case SafetensorsType::u8:
      return c10::ScalarType::Byte;
    case SafetensorsType::boolean:
      return c10::ScalarType::Bool;
  }
  fail("unknown safetensors type {}", static_cast<int>(type));
}

SafetensorsType type_of(const at::Tensor& tensor, const std::string& where) {
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Double:
      return SafetensorsType::f64;
    case c10::ScalarType::Float:
      return SafetensorsType::f32;
    case c10::ScalarType::Half:
      return SafetensorsType::f16;
    case c10::ScalarType::BFloat16:
      return SafetensorsType::bf16;
    case c10::ScalarType::Long:
      return SafetensorsType::i64;
    case c10::ScalarType::Int:
      return SafetensorsType::i32;
    case c10::ScalarType::Short:
      return SafetensorsType::i16;
    case c10::ScalarType::Char:
      return SafetensorsType::i8;
    case c10::ScalarType::UInt16:
      return SafetensorsType::u16;
    case c10::ScalarType::Byte:
      return SafetensorsType::u8;
    case c10::ScalarType::Bool:
      return SafetensorsType::boolean;
    default:
      fail("{}: dtype {} cannot be stored", where, c10::toString(tensor.scalar_type()));
  }
}

std::string where_of(const fs::path& path, const std::string& name) {
  return fmt::format("{}: tensor {}", path.string(), in_quotes(name));
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

void read_exactly(const FileDescriptor& file, std::span<std::byte> bytes) {
  const std::size_t count = file.read(bytes);
  require(count == bytes.size(), "{}: the file became shorter while it was read", file.path().string());
}

at::Tensor read_tensor(const FileDescriptor& file, const SafetensorsEntry& entry) {
  const at::Tensor tensor =
      at::empty(entry.shape, at::TensorOptions().dtype(scalar_type_of(entry.type)).device(at::kCPU));
  const std::span<std::byte> bytes = bytes_of(tensor);
  read_exactly(file, bytes);
  if (entry.type == SafetensorsType::boolean) {
    // Any other byte in a bool is undefined behaviour.
    const auto other = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    require(other == bytes.end(), "{}: a BOOL byte that is neither 0 nor 1", where_of(file.path(), entry.name));
  }
  return tensor;
}

// The header for tensors in the map's order, which is that of their names.
SafetensorsHeader header_of(const fs::path& path, const TensorMap& tensors,
                            const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  header.entries.reserve(tensors.size());
  std::uint64_t position = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::string where = where_of(path, name);
    require(tensor.defined(), "{}: is undefined", where);
    require(tensor.layout() == at::kStrided && !tensor.is_meta(), "{}: expected a dense tensor with data", where);
    SafetensorsEntry entry{.name = name, .type = type_of(tensor, where), .shape = tensor.sizes().vec()};
    entry.begin = position;
    position += static_cast<std::uint64_t>(tensor.numel()) * item_size(entry.type);
    entry.end = position;
    header.entries.push_back(std::move(entry));
  }
  return header;
}

}  // namespace

Safetensors read_safetensors(const fs::path& path) {
  const FileDescriptor file(path, O_RDONLY, "read");
  const struct stat status = file.status();
  require(S_ISREG(status.st_mode), "cannot read {}: expected a regular file", path.string());
  const auto file_size = static_cast<std::uint64_t>(status.st_size);

  std::vector<std::byte> prefix(kSafetensorsPrefixBytes);
  prefix.resize(file.read(prefix));
  const std::uint64_t length = safetensors_header_length(prefix, file_size, path.string());
  std::string json(length, '\0');
  read_exactly(file, std::as_writable_bytes(std::span(json)));
  SafetensorsHeader header =
      parse_safetensors_header(json, file_size - kSafetensorsPrefixBytes - length, path.string());

  Safetensors result{.tensors = {}, .metadata = std::move(header.metadata)};
  for (const SafetensorsEntry& entry : header.entries) {  // in the order of the bytes: one pass over the file
    result.tensors.emplace(entry.name, read_tensor(file, entry));
  }
  return result;
}

void write_safetensors(const fs::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = format_safetensors_header(header_of(path, tensors, metadata), path.string());
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(header)));
  for (const auto& [name, tensor] : tensors) {
    // One at a time, so that no second copy of everything is held.
    file.write(bytes_of(tensor.detach().to(at::kCPU).resolve_neg().contiguous()));
  }
  file.commit();
}

}  // namespace satformer
