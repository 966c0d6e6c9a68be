#pragma once
// Memory for large tensors on the CPU. A training step frees and allocates the same blocks again and again; the C
// library returns them to the system or cuts them up, in pages of 4 KiB. Here freed blocks stay, joined with free
// neighbours, in regions for which huge pages are asked (fewer page faults and TLB misses: about a tenth of a step's
// time).
#include <c10/core/Allocator.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

namespace satformer {

class HostMemory : public c10::Allocator {
 public:
  static constexpr std::size_t kLargeBlock = std::size_t{1}
                                             << 18;  // bytes; smaller ones come from LibTorch's allocator

  // Error where there is no memory.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* dest, const void* src, std::size_t count) const override;

  std::size_t reserved() const;  // bytes of all regions
  std::size_t in_use() const;    // bytes of the blocks handed out

  // The process's one, for use_host_memory() and the blocks' deleters; never destroyed, as tensors may outlive main().
  static HostMemory& instance();

 private:
  using FreeBlocks = std::map<char*, std::size_t>;
  using FreeSizes = std::set<std::pair<std::size_t, char*>>;
  // A free block's entries in both lists. A used block keeps them: giving it back must not allocate, as tensors are
  // freed in destructors, where an exception ends the process.
  struct BlockNodes {
    FreeBlocks::node_type block;
    FreeSizes::node_type size;
  };
  struct Used {
    std::size_t size = 0;
    BlockNodes nodes;
  };

  HostMemory() = default;
  void* take(std::size_t bytes);  // null where the system has no more
  bool add_region(std::size_t bytes);
  bool give_back(void* block);  // false for a block that is not from here
  void insert_free(BlockNodes nodes, char* begin, std::size_t size) noexcept;
  BlockNodes extract_free(FreeBlocks::iterator block) noexcept;
  static BlockNodes make_nodes();
  static void free_block(void* block);

  mutable std::mutex mutex_;
  FreeBlocks free_;       // by address, to join neighbours
  FreeSizes free_sizes_;  // the same by size, for the best fit
  std::unordered_map<void*, Used> used_;
  std::size_t reserved_ = 0, in_use_ = 0;
};

// Makes it LibTorch's CPU allocator for the rest of the process, in which running out of memory is then an exception.
void use_host_memory();

}  // namespace satformer
