#pragma once
// The block that runs, as the parts of the engine see it: scheduler.cpp chooses who runs, rendezvous.cpp completes
// barriers and warp operations, shared_memory.cpp and buffers.cpp watch over memory, racecheck.cpp over its order.
#include <string>
#include <vector>

#include "tests/cuda_host/engine.h"
#include "tests/cuda_host/fiber.h"

namespace cuda_host {

constexpr unsigned kWarpLanes = 32, kMaxWarps = 32;
constexpr char kFillByte = '\xff', kCanaryByte = '\xa5';  // of memory not yet written / that no one may write

enum class State : std::uint8_t { kFresh, kReady, kWaits, kDone };

struct Thread {
  uint3 index;
  State state;
  Op op;  // at which it waits or waited last
  Site site;
  WarpCall call;
  std::uint64_t result;
  Fiber* fiber;
};

struct Block {
  std::vector<Thread> threads;
  unsigned current = 0;  // the running thread
  unsigned done = 0, at_barrier = 0;
  unsigned lanes_waiting[kMaxWarps] = {};  // of each warp, at a warp operation
  unsigned lanes_gone[kMaxWarps] = {};     // returned, or beyond the block's last thread
  unsigned size() const { return static_cast<unsigned>(threads.size()); }
};
extern Block running_block;

// --- scheduler.cpp
void run_grid(dim3 blocks, dim3 threads, std::size_t shared_bytes, void (*body)(void*), void* data);
bool is_running();  // whether a kernel's thread runs now
void make_ready(unsigned thread);
// Gives the processor away until the running thread is ready again.
void wait_until_ready();
// Draws a new order of the block's threads.
const std::vector<unsigned>& draw_order();

// --- rendezvous.cpp
// What everyone waits for, when no one can go on.
std::string describe_deadlock();
std::string text_of(uint3 index);
std::string running_place();  // "block (0,0,0) thread (3,0,0)"

// --- shared_memory.cpp
struct SharedVariable {
  char* data;
  std::size_t bytes;
  std::string name;
};
// The function-local thread_locals of this program: its kernels' static shared memory.
const std::vector<SharedVariable>& static_shared();
// The arrays of CUDA_HOST_DYNAMIC_SHARED, `bytes` of each in use.
std::vector<SharedVariable> dynamic_shared(std::size_t bytes);
void prepare_shared(std::size_t dynamic_bytes);  // fills it with 0xff
void check_shared(std::size_t dynamic_bytes);    // throws when a block wrote past its dynamic part

// --- buffers.cpp
struct Allocation {
  char *map, *data;
  std::size_t map_bytes, bytes;
  std::string name;
};
const std::vector<Allocation>& allocations();
void install_fault_handlers();

// --- racecheck.cpp; nothing in the other builds
#if defined(CUDA_HOST_RACECHECK)
void races_new_launch(std::size_t dynamic_bytes);
void races_new_block();
void races_barrier();
void races_syncwarp(unsigned warp);
void races_check();  // throws when the block raced
#else
inline void races_new_launch(std::size_t) {}
inline void races_new_block() {}
inline void races_barrier() {}
inline void races_syncwarp(unsigned) {}
inline void races_check() {}
#endif

}  // namespace cuda_host
