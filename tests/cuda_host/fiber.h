#pragma once
// Fibers: stacks of their own, between which one host thread switches.
#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cuda_host {

struct Context {
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t machine;
#endif
  void* fake_stack = nullptr;  // the address sanitizer's
  const void* bottom = nullptr;
  std::size_t size = 0;
};

struct Fiber : Context {
  char* stack;
};

constexpr std::size_t kPageBytes = 4096, kStackBytes = 128 * 1024;

// Where a new fiber begins; it must not return.
using Entry = void (*)();

// A fiber that stands at `entry`. Fibers live as long as the process; recycle_fibers() puts all of them back.
Fiber* take_fiber(Entry entry);
void give_back(Fiber* fiber);      // it goes on where it gave way when it is taken again
void recycle_fibers(Entry entry);  // after an error, when frames lie abandoned on their stacks
bool on_stack_guard(const void* address);

void switch_context(Context& from, Context& to);
// The first thing a fiber must do; `from` is the context that made it run.
void enter_fiber(Context& from);

}  // namespace cuda_host
