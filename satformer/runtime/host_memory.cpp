#include "satformer/runtime/host_memory.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "satformer/core/error.h"

namespace satformer {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kRegion = std::size_t{32} << 20;  // asked of the system at once, at least
constexpr std::size_t kGranule = 4096;                  // of a block's size, and its alignment

constexpr std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

HostMemory& HostMemory::instance() {
  static HostMemory* const memory = new HostMemory;  // NOLINT(cppcoreguidelines-owning-memory): never destroyed
  return *memory;
}

c10::DataPtr HostMemory::allocate(std::size_t bytes) {
  void* const data = bytes < kLargeBlock ? c10::alloc_cpu(bytes) : take(bytes);
  require(data != nullptr || bytes == 0, "out of memory: no {} bytes for a tensor on the CPU", bytes);
  return {data, data, &free_block, c10::Device(c10::kCPU)};
}

c10::DeleterFnPtr HostMemory::raw_deleter() const { return &free_block; }

void HostMemory::copy_data(void* dest, const void* src, std::size_t count) const {
  default_copy_data(dest, src, count);
}

std::size_t HostMemory::reserved() const {
  const std::scoped_lock lock(mutex_);
  return reserved_;
}

std::size_t HostMemory::in_use() const {
  const std::scoped_lock lock(mutex_);
  return in_use_;
}

void HostMemory::free_block(void* block) {
  if (block != nullptr && !instance().give_back(block)) c10::free_cpu(block);
}

void* HostMemory::take(std::size_t bytes) {
  if (bytes > SIZE_MAX - 2 * kHugePage) return nullptr;
  const std::size_t size = round_up(bytes, kGranule);
  const std::scoped_lock lock(mutex_);
  auto fit = free_sizes_.lower_bound({size, nullptr});
  if (fit == free_sizes_.end()) {
    if (!add_region(size)) return nullptr;
    fit = free_sizes_.lower_bound({size, nullptr});
  }
  const auto [available, begin] = *fit;
  // What may throw comes first.
  BlockNodes rest = available > size ? make_nodes() : BlockNodes{};
  Used& used = used_[begin];
  used.size = size;
  used.nodes = extract_free(free_.find(begin));
  if (available > size) insert_free(std::move(rest), begin + size, available - size);
  in_use_ += size;
  return begin;
}

bool HostMemory::add_region(std::size_t bytes) {
  const std::size_t size = round_up(std::max(bytes, kRegion), kHugePage);
  BlockNodes nodes = make_nodes();
  // A huge page more than needed, so that the region can begin on one; the rest is never touched.
  void* const mapped =
      ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  const std::size_t skipped =
      round_up(reinterpret_cast<std::uintptr_t>(mapped), kHugePage) - reinterpret_cast<std::uintptr_t>(mapped);
  char* const begin = static_cast<char*>(mapped) + skipped;
  ::madvise(begin, size, MADV_HUGEPAGE);  // where the system refuses, small pages serve as well
  reserved_ += size;
  insert_free(std::move(nodes), begin, size);
  return true;
}

bool HostMemory::give_back(void* block) {
  const std::scoped_lock lock(mutex_);
  const auto used = used_.find(block);
  if (used == used_.end()) return false;
  in_use_ -= used->second.size;
  insert_free(std::move(used->second.nodes), static_cast<char*>(block), used->second.size);
  used_.erase(used);
  return true;
}

HostMemory::BlockNodes HostMemory::make_nodes() {
  FreeBlocks block{{nullptr, 0}};
  FreeSizes size{{0, nullptr}};
  return {block.extract(block.begin()), size.extract(size.begin())};
}

// Joined with the free blocks on both sides.
void HostMemory::insert_free(BlockNodes nodes, char* begin, std::size_t size) noexcept {
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + size == next->first) {
    size += next->second;
    const auto joined = next++;
    extract_free(joined);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      size += previous->second;
      extract_free(previous);
    }
  }
  nodes.block.key() = begin;
  nodes.block.mapped() = size;
  nodes.size.value() = {size, begin};
  free_.insert(std::move(nodes.block));
  free_sizes_.insert(std::move(nodes.size));
}

HostMemory::BlockNodes HostMemory::extract_free(FreeBlocks::iterator block) noexcept {
  const auto size = free_sizes_.find({block->second, block->first});
  return {free_.extract(block), free_sizes_.extract(size)};
}

void use_host_memory() {
  c10::SetCPUAllocator(&HostMemory::instance(), /*priority=*/1);
  FLAGS_caffe2_use_fatal_for_enforce = false;  // LibTorch's own allocator would end the process
}

}  // namespace satformer
