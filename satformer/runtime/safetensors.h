#pragma once
// The safetensors format: u64 little-endian header length, a JSON header
// {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {...}}, then the tensors' bytes without holes.
// Source: the format's specification in huggingface/safetensors. Reading is strict: offsets in order without gap
// or overlap, sizes that match dtype and shape, nothing after the last tensor.
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

namespace satformer {

using TensorMap = std::map<std::string, at::Tensor>;

struct Safetensors {
  TensorMap tensors;                            // CPU, contiguous, own memory
  std::map<std::string, std::string> metadata;  // the header's __metadata__
};

Safetensors read_safetensors(const std::filesystem::path& path);

// Flushed to the disk; never leaves a part of a file under `path`. Tensors of any device and stride.
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace satformer
