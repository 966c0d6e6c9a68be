#pragma once
// Lists of dense tensors as the launchers take them. No torch headers.
#include <cstddef>
#include <cstdint>

#include "csrc/cuda/dtype.h"

namespace satformer::ops::cuda {

// The numbers of a tensor; `pointer`: const void* to read, void* to write.
template <typename pointer>
struct FlatNumbers {
  pointer data;
  DType dtype;
};

// Bytes that a kernel's arguments may take on every GPU. A launch gets a table of as many tensors as fit, by value.
constexpr std::size_t kArgumentBytes = 4096;

// Blocks for n numbers of a tensor: a block never crosses from one tensor to the next.
constexpr int64_t flat_blocks(int64_t n, int64_t numbers_a_block) {
  return (n + numbers_a_block - 1) / numbers_a_block;
}

}  // namespace satformer::ops::cuda
