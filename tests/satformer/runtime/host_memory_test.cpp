#include "satformer/runtime/host_memory.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.h"

using satformer::HostMemory;

namespace {

constexpr std::size_t kLarge = HostMemory::kLargeBlock;

struct Block {
  c10::DataPtr data;
  std::size_t size;
  unsigned char mark;
};

bool holds(const Block& block) {
  const auto* bytes = static_cast<const unsigned char*>(block.data.get());
  for (std::size_t i = 0; i < block.size; ++i) {
    if (bytes[i] != block.mark) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("Blocks of host memory never overlap, and their bytes stay", "[core][memory]") {
  HostMemory& memory = HostMemory::instance();
  const std::size_t before = memory.in_use();
  std::mt19937 random(1);
  std::vector<Block> blocks;
  std::size_t large = 0;
  for (int round = 0; round < 400; ++round) {
    if (blocks.size() < 12 && random() % 3 != 0) {
      const std::size_t size = random() % 8 == 0 ? random() % kLarge : kLarge + random() % (3 * kLarge);
      Block block{memory.allocate(size), size, static_cast<unsigned char>(random() % 256)};
      CHECK(reinterpret_cast<std::uintptr_t>(block.data.get()) % 64 == 0);
      if (size > 0) std::memset(block.data.get(), block.mark, size);
      blocks.push_back(std::move(block));
    } else if (!blocks.empty()) {
      const std::size_t i = random() % blocks.size();
      CHECK(holds(blocks[i]));
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (const Block& block : blocks) {
    CHECK(holds(block));
    if (block.size >= kLarge) large += (block.size + 4095) / 4096 * 4096;
  }
  CHECK(memory.in_use() - before == large);
  blocks.clear();
  CHECK(memory.in_use() == before);
}

TEST_CASE("Host memory that was freed is used again", "[core][memory]") {
  HostMemory& memory = HostMemory::instance();
  const auto run = [&] {
    std::vector<c10::DataPtr> blocks;
    for (std::size_t i = 0; i < 40; ++i) blocks.push_back(memory.allocate(kLarge * (1 + i % 5) + 4096 * (i % 7)));
    // Freed out of order: free neighbours must join for the next, larger blocks.
    for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].clear();
    for (std::size_t i = 1; i < blocks.size(); i += 2) blocks[i].clear();
    blocks.push_back(memory.allocate(kLarge * 60));
  };
  run();
  const std::size_t reserved = memory.reserved();
  for (int i = 0; i < 20; ++i) run();
  CHECK(memory.reserved() == reserved);
}

TEST_CASE("Host memory: small blocks are LibTorch's, impossible ones an error", "[core][memory]") {
  HostMemory& memory = HostMemory::instance();
  const std::size_t before = memory.in_use();
  const c10::DataPtr small = memory.allocate(kLarge - 1), none = memory.allocate(0);
  CHECK(small.get() != nullptr);
  CHECK(memory.in_use() == before);
  CHECK_THROWS_WITH(memory.allocate(std::size_t{1} << 62),
                    "out of memory: no 4611686018427387904 bytes for a tensor on the CPU");
  CHECK_THROWS_WITH(memory.allocate(SIZE_MAX), Catch::Contains("out of memory"));
  CHECK(memory.in_use() == before);
  void* raw = memory.raw_allocate(kLarge);
  CHECK(memory.in_use() == before + kLarge);
  memory.raw_deallocate(raw);
  CHECK(memory.in_use() == before);
}

TEST_CASE("Threads share host memory and never a block; any thread may free one", "[core][memory]") {
  HostMemory& memory = HostMemory::instance();
  const std::size_t before = memory.in_use();
  std::mutex mutex;
  std::vector<Block> shared;
  std::atomic<int> damaged{0};
  const auto work = [&](unsigned char mark) {
    std::mt19937 random(mark);
    for (int round = 0; round < 100; ++round) {
      const std::size_t size = kLarge + random() % kLarge;
      Block block{memory.allocate(size), size, mark};
      std::memset(block.data.get(), mark, size);
      const std::scoped_lock lock(mutex);
      shared.push_back(std::move(block));
      // Freed by the next thread that comes by, most likely another one.
      if (shared.size() < 6) continue;
      damaged += holds(shared.front()) ? 0 : 1;
      shared.erase(shared.begin());
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned char mark = 1; mark <= 4; ++mark) threads.emplace_back(work, mark);
  }
  CHECK(damaged == 0);
  shared.clear();
  CHECK(memory.in_use() == before);
}
