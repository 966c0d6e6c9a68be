// Guarded memory, and what is said when a kernel leaves it.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/cuda_host/block.h"
#include "tests/cuda_host/sanitizer.h"

namespace cuda_host {
namespace {

constexpr size_t kAlignment = 16;
constexpr int kFaultExit = 86;

std::vector<Allocation>& list() {
  static std::vector<Allocation> allocations;
  return allocations;
}

size_t round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

[[maybe_unused]] void on_fault(int, siginfo_t* info, void*) {
  const char* address = static_cast<const char*>(info->si_addr);
  std::string text = "\ncuda_host: bad memory access in " + running_place();
  for (const Allocation& a : list()) {
    if (address < a.map || address >= a.map + a.map_bytes) continue;
    text += ": byte " + std::to_string(address - a.data) + " of '" + a.name + "' which has " + std::to_string(a.bytes) +
            " bytes";
  }
  if (on_stack_guard(address)) text += ": a thread's stack is full";
  text += "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(kFaultExit);
}

[[maybe_unused]] void on_report() {
  if (is_running()) std::fprintf(stderr, "cuda_host: the report above is from %s\n", running_place().c_str());
}

}  // namespace

const std::vector<Allocation>& allocations() { return list(); }

void install_fault_handlers() {
  static bool installed = false;
  if (installed) return;
  installed = true;
#if defined(CUDA_HOST_ASAN)
  __sanitizer_set_death_callback(on_report);
#else
  static char stack[64 * 1024];  // the thread's own may be full
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal_number : {SIGSEGV, SIGBUS}) sigaction(signal_number, &action, nullptr);
#endif
}

void* allocate_guarded(size_t bytes, size_t shift, const char* name) {
  shift %= kAlignment;
  const size_t span = round_up(bytes + shift, kAlignment), inner = round_up(span, kPageBytes);
  const size_t map_bytes = inner + 2 * kPageBytes;
  void* memory = mmap(nullptr, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error("cuda_host: out of memory");
  char* map = static_cast<char*>(memory);
  char *begin = map + kPageBytes, *end = begin + inner, *data = end - span + shift;
  mprotect(begin, inner, PROT_READ | PROT_WRITE);
  std::memset(begin, kCanaryByte, inner);
  std::memset(data, kFillByte, bytes);
  ASAN_ONLY(__asan_poison_memory_region(begin, data - begin); __asan_unpoison_memory_region(data, bytes);
            __asan_poison_memory_region(data + bytes, end - (data + bytes));)
  list().push_back({map, data, map_bytes, bytes, name});
  return data;
}

void free_guarded(void* pointer) {
  const auto found =
      std::find_if(list().begin(), list().end(), [pointer](const Allocation& a) { return a.data == pointer; });
  if (found == list().end()) return;
  ASAN_ONLY(__asan_unpoison_memory_region(found->map, found->map_bytes);)
  munmap(found->map, found->map_bytes);
  list().erase(found);
}

void check_canaries() {
  for (const Allocation& a : list()) {
    char* const end = a.map + a.map_bytes - kPageBytes;
    for (char* p = a.map + kPageBytes; p < end; ++p) {
      if (p == a.data) p += a.bytes;
      if (p >= end || *p == kCanaryByte) continue;
      *p = kCanaryByte;
      throw Error("cuda_host: a kernel wrote byte " + std::to_string(p - a.data) + " of '" + a.name + "' which has " +
                  std::to_string(a.bytes) + " bytes");
    }
  }
}

}  // namespace cuda_host

// The undefined-behaviour sanitizer calls this one; it has no callback.
extern "C" __attribute__((used, visibility("default"))) void __ubsan_on_report() { cuda_host::on_report(); }
