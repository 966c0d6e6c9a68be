// The race check. Kernels are compiled with -fsanitize=thread and linked without its library: the hooks below see every
// load and store. Two accesses of one byte by two threads, not both loads and not both atomic, race unless a barrier of
// the block, or __syncwarp in one warp, lies between them; nothing orders two blocks of a launch. Shuffles and votes
// order no memory (CUDA programming guide, "Warp Shuffle Functions").
#if defined(CUDA_HOST_RACECHECK)
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/cuda_host/block.h"

namespace cuda_host {

volatile bool in_atomic = false;

namespace {

struct Access {
  unsigned block = 0;  // 0: none yet; blocks count from 1
  unsigned block_epoch = 0, warp_epoch = 0;
  std::uint16_t thread = 0;
  bool atomic = false;
  void* place = nullptr;  // return address
};

// The last write, the last read, and an earlier read by another warp or thread since the last ordering.
struct Cell {
  Access write, read, other_read;
};

struct Watched {
  char* data;
  size_t bytes;
  std::string name;
  bool shared;
  std::vector<Cell> cells;
};

std::vector<Watched> watched;  // of the launch
Watched* last_watched = nullptr;
unsigned block = 0, block_epoch = 0, warp_epoch[kMaxWarps] = {};
std::string first_race;
unsigned races = 0;  // of the block

bool is_ordered(const Access& earlier, const Access& now) {
  if (earlier.block == 0) return true;
  if (earlier.block != now.block) return false;
  if (earlier.thread == now.thread || earlier.block_epoch < now.block_epoch) return true;
  return earlier.thread / kWarpLanes == now.thread / kWarpLanes && earlier.warp_epoch < now.warp_epoch;
}

// File and line of an address, with the lines into which it was inlined.
std::string source_line(void* place) {
  char program[512] = {}, command[700], line[300];
  Dl_info info;
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0 || dladdr(place, &info) == 0) return "?";
  const auto offset = static_cast<char*>(place) - static_cast<char*>(info.dli_fbase) - 1;
  std::snprintf(command, sizeof command, "addr2line -s -i -e '%s' %#zx 2>/dev/null", program,
                static_cast<size_t>(offset));
  std::string text;
  if (FILE* lines = popen(command, "r")) {
    const auto is_ours = [](const char* l) { return std::strstr(l, "cuda_runtime.h:") || std::strstr(l, "tuple:"); };
    while (std::fgets(line, sizeof line, lines) && !is_ours(line)) {
      line[std::strcspn(line, " \n")] = 0;
      text += (text.empty() ? "" : " < ") + std::string(line);
    }
    pclose(lines);
  }
  return text.empty() ? "?" : text;
}

std::string describe(const Access& access, bool is_write) {
  const char* kind = access.atomic ? "atomic" : is_write ? "write" : "read";
  std::string text = std::string(kind) + " by thread " + text_of(running_block.threads[access.thread].index);
  if (access.block != block) text += " of an earlier block (" + std::to_string(access.block - 1) + ")";
  return text + " at " + source_line(access.place);
}

void report(const Watched& memory, size_t byte, const Access& earlier, bool earlier_write, const Access& now,
            bool is_write) {
  if (races++ != 0) return;
  first_race = "cuda_host: block " + text_of(blockIdx) + ": race on byte " + std::to_string(byte) + " of " +
               (memory.shared ? "shared " : "") + "'" + memory.name + "': " + describe(now, is_write) +
               " is not ordered after " + describe(earlier, earlier_write);
}

Watched* find(const char* p) {
  const auto holds = [p](const Watched& memory) { return p >= memory.data && p < memory.data + memory.bytes; };
  if (last_watched != nullptr && holds(*last_watched)) return last_watched;
  const auto found = std::find_if(watched.begin(), watched.end(), holds);
  return last_watched = found == watched.end() ? nullptr : &*found;
}

void note_read(Cell& cell, const Access& now) {
  const bool keep = !is_ordered(cell.other_read, now) &&
                    cell.other_read.thread / kWarpLanes != now.thread / kWarpLanes &&
                    cell.read.thread / kWarpLanes == now.thread / kWarpLanes;
  if (cell.read.thread != now.thread && !is_ordered(cell.read, now) && !keep) cell.other_read = cell.read;
  cell.read = now;
}

void note(void* address, size_t bytes, bool is_write, void* place) {
  if (!is_running()) return;
  Watched* memory = find(static_cast<char*>(address));
  if (memory == nullptr) return;
  const unsigned thread = running_block.current;
  const Access now{block,     block_epoch, warp_epoch[thread / kWarpLanes], static_cast<std::uint16_t>(thread),
                   in_atomic, place};
  const auto races_with = [&now](const Access& earlier) {
    return !is_ordered(earlier, now) && !(earlier.atomic && now.atomic);
  };
  const auto first = static_cast<size_t>(static_cast<char*>(address) - memory->data);
  for (size_t i = first; i < std::min(first + bytes, memory->bytes); ++i) {
    Cell& cell = memory->cells[i];
    if (races_with(cell.write)) return report(*memory, i, cell.write, true, now, is_write);
    if (!is_write) {
      note_read(cell, now);
      continue;
    }
    for (const Access* read : {&cell.read, &cell.other_read}) {
      if (races_with(*read)) return report(*memory, i, *read, false, now, true);
    }
    cell.write = now;
  }
}

void watch(char* data, size_t bytes, const std::string& name, bool shared) {
  watched.push_back({data, bytes, name, shared, std::vector<Cell>(bytes)});
}

}  // namespace

void races_new_launch(size_t dynamic_bytes) {
  watched.clear();
  block = 0;
  for (const Allocation& a : allocations()) watch(a.data, a.bytes, a.name, false);
  for (const SharedVariable& s : static_shared()) watch(s.data, s.bytes, s.name, true);
  for (const SharedVariable& s : dynamic_shared(dynamic_bytes)) watch(s.data, s.bytes, s.name, true);
}

void races_new_block() {
  for (Watched& memory : watched) {
    if (memory.shared) std::fill(memory.cells.begin(), memory.cells.end(), Cell{});
  }
  ++block;
  block_epoch = 0;
  std::fill(std::begin(warp_epoch), std::end(warp_epoch), 0);
  first_race.clear();
  races = 0;
  last_watched = nullptr;
  in_atomic = false;
}

void races_barrier() { ++block_epoch; }
void races_syncwarp(unsigned warp) { ++warp_epoch[warp]; }

void races_check() {
  if (races != 0) throw Error(first_race + " (" + std::to_string(races) + " racing accesses in this block)");
}

}  // namespace cuda_host

using cuda_host::note;

#define CUDA_HOST_HOOKS(n)                                                                              \
  extern "C" void __tsan_read##n(void* p) { note(p, n, false, __builtin_return_address(0)); }           \
  extern "C" void __tsan_write##n(void* p) { note(p, n, true, __builtin_return_address(0)); }           \
  extern "C" void __tsan_unaligned_read##n(void* p) { note(p, n, false, __builtin_return_address(0)); } \
  extern "C" void __tsan_unaligned_write##n(void* p) { note(p, n, true, __builtin_return_address(0)); }
CUDA_HOST_HOOKS(1)
CUDA_HOST_HOOKS(2)
CUDA_HOST_HOOKS(4)
CUDA_HOST_HOOKS(8)
CUDA_HOST_HOOKS(16)
extern "C" void __tsan_read_range(void* p, size_t n) { note(p, n, false, __builtin_return_address(0)); }
extern "C" void __tsan_write_range(void* p, size_t n) { note(p, n, true, __builtin_return_address(0)); }
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
#endif
