#include "satformer/runtime/safetensors.h"

#include <ATen/ops/empty.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "satformer/core/error.h"
#include "satformer/io/atomic_file.h"
#include "satformer/io/safetensors_file.h"
#include "satformer/io/safetensors_header.h"
#include "satformer/io/strict_json.h"

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
  SafetensorsFile file(path);
  Safetensors result{.tensors = {}, .metadata = file.header().metadata};
  for (const SafetensorsEntry& entry : file.header().entries) {  // in the order of the bytes: one pass over the file
    const auto options = at::TensorOptions().dtype(scalar_type_of(entry.type)).device(at::kCPU);
    const at::Tensor tensor = at::empty(entry.shape, options);
    file.read_next(bytes_of(tensor));
    result.tensors.emplace(entry.name, tensor);
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
