#pragma once
// How kernels go over a list of tensors in blocks. Compiled with the CPU kernels, once for each capability; see
// cpu/gate_row.h on the namespace.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#include "csrc/cpu/flat_blocks.h"
#include "csrc/cpu/row.h"

namespace satformer::ops::inline CPU_CAPABILITY {

struct FlatBlock {
  std::int64_t index;   // among all blocks
  std::int64_t tensor;  // in the list
  std::int64_t begin, size;
};

// The tensor of a block: the last one that begins at or before it; tensors without numbers have no block.
inline std::int64_t tensor_of_block(const FlatBlocks& blocks, std::int64_t block) {
  std::int64_t low = 0, high = blocks.tensors;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (blocks.first[middle] <= block ? low : high) = middle;
  }
  return low;
}

// visit(block) for every block, shared among the threads: each takes a stretch of the flat range.
template <typename Visit>
void for_each_block(const FlatBlocks& blocks, const Visit& visit) {
  if (blocks.count == 0) return;
  const std::int64_t numbers_a_block = blocks.numbers / blocks.count;
  at::parallel_for(0, blocks.count, rows_a_task(numbers_a_block), [&](std::int64_t first, std::int64_t last) {
    std::int64_t tensor = tensor_of_block(blocks, first);
    for (std::int64_t block = first; block < last; ++block) {
      while (block >= blocks.first[tensor + 1]) ++tensor;
      const std::int64_t begin = (block - blocks.first[tensor]) * kFlatBlock;
      visit(FlatBlock{block, tensor, begin, std::min(kFlatBlock, blocks.numel[tensor] - begin)});
    }
  });
}

}  // namespace satformer::ops::inline CPU_CAPABILITY
