#include "tests/cuda_host/fiber.h"

#include <sys/mman.h>

#include <memory>
#include <vector>

#include "tests/cuda_host/engine.h"
#include "tests/cuda_host/sanitizer.h"

#if defined(__x86_64__)
// Saves the registers that a call must keep, and the stack pointer; takes up those of the other.
extern "C" void cuda_host_swap(void** saved, void* loaded);
asm(R"(.pushsection .text
.globl cuda_host_swap
.type cuda_host_swap,@function
cuda_host_swap:
  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
  ret
.size cuda_host_swap,.-cuda_host_swap
.popsection
)");
#endif

namespace cuda_host {
namespace {

std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber*> idle;

void prepare(Fiber& fiber, Entry entry) {
  ASAN_ONLY(__asan_unpoison_memory_region(fiber.stack, kStackBytes);)  // frames abandoned after an error
  fiber.bottom = fiber.stack;
  fiber.size = kStackBytes;
  fiber.fake_stack = nullptr;
#if defined(__x86_64__)
  constexpr int kSavedRegisters = 6;
  // The entry sees rsp % 16 == 8, as after a call.
  void** top = reinterpret_cast<void**>(fiber.stack + kStackBytes) - 2;
  *top = reinterpret_cast<void*>(entry);
  fiber.stack_pointer = top - kSavedRegisters;
#else
  getcontext(&fiber.machine);
  fiber.machine.uc_stack.ss_sp = fiber.stack;
  fiber.machine.uc_stack.ss_size = kStackBytes;
  fiber.machine.uc_link = nullptr;
  makecontext(&fiber.machine, entry, 0);
#endif
}

}  // namespace

Fiber* take_fiber(Entry entry) {
  if (!idle.empty()) {
    Fiber* fiber = idle.back();
    idle.pop_back();
    return fiber;
  }
  void* memory = mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("cuda_host: no memory for a fiber's stack");
  mprotect(memory, kPageBytes, PROT_NONE);
  fibers.push_back(std::make_unique<Fiber>());
  fibers.back()->stack = static_cast<char*>(memory) + kPageBytes;
  prepare(*fibers.back(), entry);
  return fibers.back().get();
}

void give_back(Fiber* fiber) { idle.push_back(fiber); }

void recycle_fibers(Entry entry) {
  idle.clear();
  for (const auto& fiber : fibers) {
    prepare(*fiber, entry);
    idle.push_back(fiber.get());
  }
}

bool on_stack_guard(const void* address) {
  const char* a = static_cast<const char*>(address);
  for (const auto& fiber : fibers) {
    if (a >= fiber->stack - kPageBytes && a < fiber->stack) return true;
  }
  return false;
}

void switch_context(Context& from, Context& to) {
  ASAN_ONLY(__sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.size);)
#if defined(__x86_64__)
  cuda_host_swap(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.machine, &to.machine);
#endif
  ASAN_ONLY(__sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);)
}

void enter_fiber([[maybe_unused]] Context& from) {
#if defined(CUDA_HOST_ASAN)
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  if (from.bottom == nullptr) from.bottom = bottom, from.size = size;
#endif
}

}  // namespace cuda_host
