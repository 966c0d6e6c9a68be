// Runs the threads of one CUDA block at a time as fibers of the calling host thread. A fiber takes one
// thread after another and only stays occupied while its thread waits at a rendezvous, so kernels without
// barriers use one fiber and no switch. The last thread to arrive at a rendezvous completes it.
// Compile this file without sanitizers: for kernels under ASan it needs -DCUDA_HOST_ASAN, for the race check
// -DCUDA_HOST_RACECHECK. One launch at a time, always from the same host thread.
#include "tests/cuda_host/engine.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <list>
#include <memory>
#include <random>

#if defined(CUDA_HOST_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define ASAN_ONLY(...) __VA_ARGS__
#else
#define ASAN_ONLY(...)
#endif
#if defined(CUDA_HOST_RACECHECK)
#define RACE_ONLY(...) __VA_ARGS__
#else
#define RACE_ONLY(...)
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// ---- context switch --------------------------------------------------------------------------------
#if defined(__x86_64__) && !defined(CUDA_HOST_UCONTEXT)
extern "C" void cuda_host_swap(void** save_sp, void* load_sp);
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
#else
#include <ucontext.h>
#endif

namespace cuda_host {
Options options;
namespace {

struct Context {
#if defined(__x86_64__) && !defined(CUDA_HOST_UCONTEXT)
  void* sp = nullptr;
#else
  ucontext_t uc;
#endif
  void* fake = nullptr;          // ASan's fake stack
  const void* bottom = nullptr;  // stack bounds, for ASan
  size_t size = 0;
};

constexpr size_t kStack = 128 * 1024, kPage = 4096;
enum class State : uint8_t { fresh, ready, block_wait, warp_wait, done };

struct Fiber : Context {
  char* stack;
};

struct Thread {
  uint3 tid;
  State state;
  Op op;
  Site site;
  unsigned mask;
  int arg, width;
  uint64_t value, result;
  Fiber* fiber;
};

Context main_ctx;
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber*> idle;
Fiber* self = nullptr;  // running fiber, null in the scheduler's caller
std::vector<Thread> threads;
unsigned nthreads, cur, ndone, nwait;
unsigned warp_waiting[32], warp_gone[32];  // lanes of each warp at a warp operation / returned or absent
std::vector<unsigned> runq;                // runnable threads; order random: any, else from the head on
size_t head;
int chosen = -1;  // taken from runq, to be run next
std::mt19937 rng;
void (*body)(void*);
void* body_data;
std::string failure;
bool running = false;

std::string str(uint3 v) {
  char b[64];
  snprintf(b, sizeof b, "(%u,%u,%u)", v.x, v.y, v.z);
  return b;
}
const char* op_name(Op op) {
  static const char* n[] = {"?",
                            "__syncthreads",
                            "__syncthreads_count",
                            "__syncthreads_and",
                            "__syncthreads_or",
                            "__syncwarp",
                            "__shfl_sync",
                            "__shfl_up_sync",
                            "__shfl_down_sync",
                            "__shfl_xor_sync",
                            "__ballot_sync",
                            "__any_sync",
                            "__all_sync",
                            "__match_any_sync",
                            "__reduce_add_sync",
                            "__reduce_min_sync",
                            "__reduce_max_sync",
                            "__reduce_min_sync",
                            "__reduce_max_sync",
                            "__reduce_and_sync",
                            "__reduce_or_sync",
                            "__reduce_xor_sync"};
  return n[(int)op];
}
std::string where(const Thread& t) {
  return "thread " + str(t.tid) + " at " + op_name(t.op) + " " + t.site.file + ":" + std::to_string(t.site.line);
}
std::string here() { return "block " + str(blockIdx) + " thread " + str(threadIdx); }

void fiber_main();

void switch_to(Context& from, Context& to) {
  ASAN_ONLY(__sanitizer_start_switch_fiber(&from.fake, to.bottom, to.size);)
#if defined(__x86_64__) && !defined(CUDA_HOST_UCONTEXT)
  cuda_host_swap(&from.sp, to.sp);
#else
  swapcontext(&from.uc, &to.uc);
#endif
  ASAN_ONLY(__sanitizer_finish_switch_fiber(from.fake, nullptr, nullptr);)
}

void fiber_entry() {
  const void* b = nullptr;
  size_t s = 0;
  ASAN_ONLY(__sanitizer_finish_switch_fiber(nullptr, &b, &s);)
  if (!main_ctx.bottom) {
    main_ctx.bottom = b;
    main_ctx.size = s;
  }  // the first fiber is entered from main
  try {
    fiber_main();
  } catch (const std::exception& e) {
    failure = e.what();
  }
  switch_to(*self, main_ctx);  // the launch is given up, the other fibers' frames are abandoned
  abort();
}

void fiber_reset(Fiber& f) {
  ASAN_ONLY(__asan_unpoison_memory_region(f.stack, kStack);)  // frames abandoned after an error
  f.bottom = f.stack;
  f.size = kStack;
  f.fake = nullptr;
#if defined(__x86_64__) && !defined(CUDA_HOST_UCONTEXT)
  void** sp = reinterpret_cast<void**>(f.stack + kStack) - 2;  // the entry sees rsp % 16 == 8, as after a call
  *sp = reinterpret_cast<void*>(&fiber_entry);
  f.sp = sp - 6;
#else
  getcontext(&f.uc);
  f.uc.uc_stack.ss_sp = f.stack;
  f.uc.uc_stack.ss_size = kStack;
  f.uc.uc_link = nullptr;
  makecontext(&f.uc, &fiber_entry, 0);
#endif
}

Fiber* fiber_get() {
  if (!idle.empty()) {
    Fiber* f = idle.back();
    idle.pop_back();
    return f;
  }
  auto f = std::make_unique<Fiber>();
  char* m = static_cast<char*>(
      mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (m == MAP_FAILED) throw Error("cuda_host: no memory for fiber stacks");
  mprotect(m, kPage, PROT_NONE);
  f->stack = m + kPage;
  fiber_reset(*f);
  fibers.push_back(std::move(f));
  return fibers.back().get();
}

[[noreturn]] void fail(const std::string& msg) { throw Error(msg); }  // in a fiber; fiber_entry hands it to run()

void push_ready(unsigned i) {
  threads[i].state = State::ready;
  runq.push_back(i);
}

// Order random: with even seeds any runnable thread is next; with odd seeds one warp, drawn anew after each
// block barrier, runs ahead of the others as far as it can.
bool ahead() { return options.order == Order::kRandom && options.seed % 2; }

template <class It>
void shuffle(It a, It b) {
  for (size_t n = b - a; n > 1; n--) std::swap(a[n - 1], a[rng() % n]);
}

std::vector<unsigned> order;  // of the threads of a block, at its start and after each block barrier
void draw_order() {
  order.clear();
  unsigned warps = (nthreads + 31) / 32, w[32];
  for (unsigned k = 0; k < warps; k++) w[k] = options.order == Order::kReverse ? warps - 1 - k : k;
  if (ahead()) shuffle(w, w + warps);
  for (unsigned k = 0; k < warps; k++) {
    const size_t at = order.size();
    for (unsigned i = w[k] * 32; i < std::min(nthreads, w[k] * 32 + 32); i++) order.push_back(i);
    if (ahead())
      shuffle(order.begin() + at, order.end());
    else if (options.order == Order::kReverse)
      std::reverse(order.begin() + at, order.end());
  }
}

bool pop(unsigned& i) {
  if (chosen >= 0) {
    i = chosen;
    chosen = -1;
    return true;
  }
  if (head == runq.size()) {
    runq.clear();
    head = 0;
    return false;
  }
  if (ahead()) {
    i = runq.back();
    runq.pop_back();
    return true;
  }
  if (options.order == Order::kRandom) {
    size_t k = head + (size_t)(((uint64_t)rng() * (runq.size() - head)) >> 32);
    std::swap(runq[head], runq[k]);
  }
  i = runq[head++];
  return true;
}

void set_current(unsigned i) {
  cur = i;
  threadIdx = threads[i].tid;
}

bool gone(unsigned i) { return warp_gone[i / 32] >> (i % 32) & 1; }

std::string stuck() {
  std::string s = "cuda_host: block " + str(blockIdx) + ": threads wait for ever:";
  struct Group {
    Op op;
    Site site;
    unsigned n, first;
  };
  std::vector<Group> g;
  for (unsigned i = 0; i < nthreads; i++) {
    const Thread& t = threads[i];
    Op op = t.state == State::done ? Op::none : t.op;
    size_t k = 0;
    while (k < g.size() &&
           !(g[k].op == op && (op == Op::none || (g[k].site.line == t.site.line && g[k].site.file == t.site.file))))
      k++;
    if (k == g.size()) g.push_back({op, t.site, 0, i});
    g[k].n++;
  }
  for (auto& x : g) {
    s += "\n  " + std::to_string(x.n) +
         (x.op == Op::none ? " returned, first thread " + str(threads[x.first].tid)
                           : ", first " + where(threads[x.first]));
    if (x.op >= Op::syncwarp) {
      unsigned absent = 0, w = x.first & ~31u;
      for (unsigned l = 0; l < 32; l++)
        if ((threads[x.first].mask >> l & 1) && gone(w + l)) absent |= 1u << l;
      char b[80];
      snprintf(b, sizeof b, " mask %08x, of these returned or absent %08x", threads[x.first].mask, absent);
      s += b;
    }
  }
  return s;
}

// Give the processor away; returns when the calling thread is ready again. `blocked` false: the thread is done.
void reschedule(bool blocked) {
  for (;;) {
    unsigned i;
    if (!pop(i)) {
      if (ndone != nthreads) fail(stuck());
      idle.push_back(self);
      switch_to(*self, main_ctx);
      return;  // the next block starts this fiber again
    }
    Thread& t = threads[i];
    if (t.state == State::fresh && !blocked) {
      chosen = i;
      return;
    }  // taken by fiber_main on this fiber
    Fiber* me = self;
    if (t.state == State::fresh) {
      chosen = i;
      self = fiber_get();
    } else {
      set_current(i);
      self = t.fiber;
      if (!blocked) idle.push_back(me);
    }
    switch_to(*me, *self);
    return;
  }
}

#if defined(CUDA_HOST_RACECHECK)
struct Race {
  unsigned launch = 0, block = 0, block_epoch = 0, warp_epoch[32] = {};
  std::string first;
  unsigned count = 0;
} race;
void race_new_block(bool new_launch, size_t shared_bytes);
#endif

void finish_block_op() {
  Thread& c = threads[cur];
  unsigned count = 0, n = 0;
  for (unsigned i = 0; i < nthreads; i++) {
    Thread& t = threads[i];
    if (t.state == State::done) continue;
    if (t.op != c.op || t.site.line != c.site.line || strcmp(t.site.file, c.site.file))
      fail("cuda_host: block " + str(blockIdx) + ": divergent barrier: " + where(c) + " while " + where(t));
    count += t.value != 0;
    n++;
  }
  if (n != nthreads && !options.exited_ok) fail(stuck());
  uint64_t r = c.op == Op::syncthreads_count ? count : c.op == Op::syncthreads_and ? count == n : count != 0;
  nwait = 0;
  RACE_ONLY(race.block_epoch++;)
  draw_order();
  for (unsigned i : order) {
    if (threads[i].state == State::done) continue;
    threads[i].result = r;
    if (i != cur) push_ready(i);
  }
}

// Completes the warp operation `c` waits in, if every lane of its mask has arrived.
bool try_finish_warp_op(unsigned ci) {
  Thread& c = threads[ci];
  const unsigned w = ci & ~31u, need = options.exited_ok ? c.mask & ~warp_gone[ci / 32] : c.mask;
  if (need & ~warp_waiting[ci / 32]) return false;
  for (unsigned l = 0; l < 32; l++) {
    if (!(need >> l & 1)) continue;
    Thread& t = threads[w + l];
    if (t.mask != c.mask || t.op != c.op || t.site.line != c.site.line || strcmp(t.site.file, c.site.file))
      fail("cuda_host: block " + str(blockIdx) + ": divergent warp operation: " + where(c) + " while " + where(t) +
           (t.mask != c.mask ? " with another mask" : ""));
  }
  warp_waiting[ci / 32] &= ~need;
  RACE_ONLY(if (c.op == Op::syncwarp) race.warp_epoch[ci / 32]++;)
  const unsigned all = need;
  uint64_t acc = 0;
  unsigned pred = 0;
  bool first = true;
  for (unsigned l = 0; l < 32; l++) {
    if (!(need >> l & 1)) continue;
    uint64_t v = threads[w + l].value;
    int a = (int)acc, b = (int)v;
    if (v) pred |= 1u << l;
    switch (c.op) {
      case Op::add:
        acc += v;
        break;
      case Op::band:
        acc = first ? v : acc & v;
        break;
      case Op::bor:
        acc |= v;
        break;
      case Op::bxor:
        acc ^= v;
        break;
      case Op::min:
        acc = first || b < a ? v : acc;
        break;
      case Op::max:
        acc = first || b > a ? v : acc;
        break;
      case Op::umin:
        acc = first || v < acc ? v : acc;
        break;
      case Op::umax:
        acc = first || v > acc ? v : acc;
        break;
      default:
        break;
    }
    first = false;
  }
  for (unsigned k = 0; k < 32; k++) {
    unsigned l = options.order == Order::kReverse ? 31 - k : k;
    if (!(all >> l & 1)) continue;
    Thread& t = threads[w + l];
    int src = l, lo = l & ~(t.width - 1), hi = lo + t.width - 1;
    switch (c.op) {
      case Op::ballot:
        t.result = pred;
        break;
      case Op::any:
        t.result = pred != 0;
        break;
      case Op::all:
        t.result = pred == all;
        break;
      case Op::match_any:
        t.result = 0;
        for (unsigned m = 0; m < 32; m++)
          if ((all >> m & 1) && threads[w + m].value == t.value) t.result |= 1u << m;
        break;
      case Op::shfl:
        src = lo + (t.arg & (t.width - 1));
        break;
      case Op::shfl_up:
        src = (int)l - t.arg < lo ? l : l - t.arg;
        break;
      case Op::shfl_down:
        src = t.arg > hi - (int)l ? l : l + t.arg;
        break;
      case Op::shfl_xor:
        src = (int)(l ^ t.arg) > hi ? l : (l ^ t.arg) & 31;
        break;
      case Op::syncwarp:
        break;
      default:
        t.result = acc;
    }
    if (c.op >= Op::shfl && c.op <= Op::shfl_xor) {
      if (!(c.mask >> src & 1))
        fail("cuda_host: block " + str(blockIdx) + ": " + where(t) + " reads lane " + std::to_string(src) +
             " which its mask does not name");
      t.result = (all >> src & 1) ? threads[w + src].value : ~uint64_t(0);
    }
    if (w + l != cur) push_ready(w + l);
  }
  return true;
}

void fiber_main() {
  for (;;) {
    unsigned i;
    while (pop(i)) {
      if (threads[i].state != State::fresh) {  // a waiting thread became ready: go on there
        chosen = i;
        reschedule(false);
        continue;
      }
      threads[i].state = State::ready;
      threads[i].fiber = self;
      set_current(i);
      body(body_data);
      threads[cur].state = State::done;
      ndone++;
      warp_gone[cur / 32] |= 1u << (cur & 31);
      i = cur;
      if (options.exited_ok) {
        if (nwait && nwait + ndone == nthreads) {
          for (unsigned k = 0; k < nthreads; k++)
            if (threads[k].state == State::block_wait) {
              cur = k;
              break;
            }
          unsigned c = cur;
          finish_block_op();
          push_ready(c);
        } else {
          for (unsigned w = i & ~31u, k = w; k < w + 32 && k < nthreads; k++)
            if (threads[k].state == State::warp_wait) {
              cur = k;
              if (try_finish_warp_op(k)) push_ready(k);
            }
        }
      }
    }
    reschedule(false);
  }
}

// ---- shared memory -----------------------------------------------------------------------------------
struct Range {
  char* p;
  size_t n;
  std::string name;
};
std::vector<Range> static_shared;  // function-local thread_locals of this program, from its symbol table
std::vector<void* (*)()>& dynamic_shared() {
  static std::vector<void* (*)()> v;
  return v;
}
constexpr size_t kTail = 1024;

void find_static_shared() {
  char* tls = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* i, size_t, void* d) {
        *static_cast<void**>(d) = i->dlpi_tls_data;
        return 1;
      },
      &tls);  // first: the program
  int fd = open("/proc/self/exe", O_RDONLY);
  struct stat st;
  if (fd < 0 || fstat(fd, &st)) throw Error("cuda_host: cannot read /proc/self/exe");
  char* m = static_cast<char*>(mmap(nullptr, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0));
  close(fd);
  auto* eh = reinterpret_cast<ElfW(Ehdr)*>(m);
  auto* sh = reinterpret_cast<ElfW(Shdr)*>(m + eh->e_shoff);
  bool found = false;
  std::vector<std::pair<char*, char*>> all;
  for (int k = 0; k < eh->e_shnum; k++) {
    if (sh[k].sh_type != SHT_SYMTAB) continue;
    found = true;
    auto* sym = reinterpret_cast<ElfW(Sym)*>(m + sh[k].sh_offset);
    const char* names = m + sh[sh[k].sh_link].sh_offset;
    for (size_t i = 0; i < sh[k].sh_size / sizeof *sym; i++) {
      if (ELF64_ST_TYPE(sym[i].st_info) != STT_TLS || sym[i].st_shndx == SHN_UNDEF || !sym[i].st_size) continue;
      char* p = tls + sym[i].st_value;
      all.push_back({p, p + sym[i].st_size});
      if (!strncmp(names + sym[i].st_name, "_ZZ", 3))
        static_shared.push_back({p, sym[i].st_size, names + sym[i].st_name});
    }
  }
  munmap(m, st.st_size);
  if (!found) throw Error("cuda_host: the test program has no symbol table (stripped?)");
#if defined(CUDA_HOST_ASAN)
  std::sort(all.begin(), all.end());  // GCC gives thread_locals no red zones; poison the alignment gaps at least
  for (size_t i = 0; i + 1 < all.size(); i++)
    for (auto& r : static_shared)
      if (r.p == all[i].first && all[i].second < all[i + 1].first)
        __asan_poison_memory_region(all[i].second, std::min<size_t>(all[i + 1].first - all[i].second, 64));
#endif
}

void prepare_shared(size_t bytes) {
  for (auto& r : static_shared) memset(r.p, 0xff, r.n);
  for (auto f : dynamic_shared()) {
    char* p = static_cast<char*>(f());
    ASAN_ONLY(__asan_unpoison_memory_region(p, kMaxDynamic);)
    memset(p, 0xff, bytes);
    memset(p + bytes, 0xa5, std::min(kTail, kMaxDynamic - bytes));
    ASAN_ONLY(__asan_poison_memory_region(p + bytes, kMaxDynamic - bytes);)
  }
}

void check_shared(size_t bytes) {
  for (auto f : dynamic_shared()) {
    char* p = static_cast<char*>(f());
    for (size_t i = bytes; i < std::min(bytes + kTail, kMaxDynamic); i++)
      if (p[i] != (char)0xa5)
        throw Error("cuda_host: block " + str(blockIdx) + " wrote past its " + std::to_string(bytes) +
                    " bytes of dynamic shared memory, at byte " + std::to_string(i));
  }
}

// ---- buffers and faults --------------------------------------------------------------------------------
struct Alloc {
  char *map, *p;
  size_t map_bytes, bytes;
  std::string name;
};
std::list<Alloc> allocs;
constexpr unsigned char kCanary = 0xa5;

[[maybe_unused]] void on_fault(int sig, siginfo_t* si, void*) {
  char* a = static_cast<char*>(si->si_addr);
  std::string s = std::string("\ncuda_host: ") + (sig == SIGSEGV || sig == SIGBUS ? "bad memory access" : "fault") +
                  " in " + here();
  for (auto& x : allocs)
    if (a >= x.map && a < x.map + x.map_bytes)
      s += ": byte " + std::to_string(a - x.p) + " of '" + x.name + "' which has " + std::to_string(x.bytes) + " bytes";
  for (auto& f : fibers)
    if (a >= f->stack - kPage && a < f->stack) s += ": fiber stack overflow";
  s += "\n";
  (void)!write(2, s.data(), s.size());
  _exit(86);
}

[[maybe_unused]] void on_death() {
  if (running) fprintf(stderr, "cuda_host: the report above is from %s\n", here().c_str());
}

void init_once() {
  static bool done = false;
  if (done) return;
  done = true;
  find_static_shared();
#if defined(CUDA_HOST_ASAN)
  __sanitizer_set_death_callback(on_death);
#else
  static char alt[64 * 1024];
  stack_t ss{};
  ss.ss_sp = alt;
  ss.ss_size = sizeof alt;
  sigaltstack(&ss, nullptr);
  struct sigaction sa{};
  sa.sa_sigaction = on_fault;
  sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int s : {SIGSEGV, SIGBUS}) sigaction(s, &sa, nullptr);
#endif
}
}  // namespace

#if defined(CUDA_HOST_RACECHECK)
#include "tests/cuda_host/racecheck.inc"
#endif

bool register_dynamic(void* (*address)()) {
  dynamic_shared().push_back(address);
  return true;
}

unsigned active_mask() {
  unsigned m = 0, w = cur & ~31u;
  for (unsigned l = 0; l < 32; l++)
    if (!gone(w + l)) m |= 1u << l;
  return m;
}

uint64_t block_op(Op op, uint64_t value, Site site) {
  Thread& t = threads[cur];
  t.op = op;
  t.site = site;
  t.value = value;
  t.state = State::block_wait;
  nwait++;
  unsigned me = cur;
  if (nwait + ndone == nthreads) {
    finish_block_op();
    t.state = State::ready;
  } else
    reschedule(true);
  return threads[me].result;
}

uint64_t warp_op(Op op, unsigned mask, uint64_t value, int arg, int width, Site site) {
  Thread& t = threads[cur];
  t.op = op;
  t.site = site;
  t.value = value;
  t.mask = mask;
  t.arg = arg;
  t.width = width;
  if (!(mask >> (cur & 31) & 1))
    fail("cuda_host: block " + str(blockIdx) + ": " + where(t) + ": the mask does not name the calling thread");
  if (width < 1 || width > 32 || (width & (width - 1)))
    fail("cuda_host: block " + str(blockIdx) + ": " + where(t) + ": bad width");
  unsigned me = cur;
  t.state = State::warp_wait;
  warp_waiting[me / 32] |= 1u << (me & 31);
  if (try_finish_warp_op(me))
    t.state = State::ready;
  else
    reschedule(true);
  return threads[me].result;
}

void run(dim3 grid, dim3 block, size_t shared_bytes, void (*b)(void*), void* data) {
  if (running) throw Error("cuda_host: nested launch");
  init_once();
  nthreads = block.x * block.y * block.z;
  if (!nthreads || nthreads > 1024 || block.z > 64) throw Error("cuda_host: bad block size");
  if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535) throw Error("cuda_host: bad grid size");
  if (shared_bytes > 227 * 1024) throw Error("cuda_host: too much dynamic shared memory");
  body = b;
  body_data = data;
  blockDim = block;
  gridDim = grid;
  rng.seed(options.seed);
  threads.resize(nthreads);
  failure.clear();
  running = true;
  struct Stop {
    ~Stop() { running = false; }
  } stop;
  for (unsigned z = 0; z < grid.z; z++)
    for (unsigned y = 0; y < grid.y; y++)
      for (unsigned x = 0; x < grid.x; x++) {
        blockIdx = {x, y, z};
        prepare_shared(shared_bytes);
        RACE_ONLY(race_new_block(!x && !y && !z, shared_bytes);)
        ndone = nwait = 0;
        head = 0;
        chosen = -1;
        runq.clear();
        for (unsigned w = 0; w < 32; w++) {
          warp_waiting[w] = 0;
          warp_gone[w] = w * 32 + 32 <= nthreads ? 0 : w * 32 >= nthreads ? ~0u : ~0u << (nthreads & 31);
        }
        draw_order();
        for (unsigned i : order) {
          threads[i].tid = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
          threads[i].state = State::fresh;
          runq.push_back(i);
        }
        self = fiber_get();
        switch_to(main_ctx, *self);
        self = nullptr;
        if (!failure.empty()) {
          idle.clear();
          for (auto& f : fibers) {
            fiber_reset(*f);
            idle.push_back(f.get());
          }
          throw Error(failure);
        }
        check_shared(shared_bytes);
        RACE_ONLY(if (race.count) throw Error(race.first + " (" + std::to_string(race.count) +
                                              " racing accesses in this block)");)
      }
  check_buffers();
}

void* buffer_alloc(size_t bytes, size_t shift, const char* name) {
  shift %= 16;
  size_t span = (bytes + shift + 15) / 16 * 16, body_bytes = (span + kPage - 1) / kPage * kPage,
         total = body_bytes + 2 * kPage;
  char* m = static_cast<char*>(mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (m == MAP_FAILED) throw Error("cuda_host: out of memory");
  mprotect(m + kPage, body_bytes, PROT_READ | PROT_WRITE);
  char* end = m + kPage + body_bytes;
  char* p = end - span + shift;
  memset(m + kPage, kCanary, body_bytes);
  memset(p, 0xff, bytes);
  ASAN_ONLY(__asan_poison_memory_region(m + kPage, p - (m + kPage));
            __asan_poison_memory_region(p + bytes, end - (p + bytes)); __asan_unpoison_memory_region(p, bytes);)
  allocs.push_back({m, p, total, bytes, name});
  return p;
}

void buffer_free(void* p) {
  for (auto it = allocs.begin(); it != allocs.end(); ++it)
    if (it->p == p) {
      ASAN_ONLY(__asan_unpoison_memory_region(it->map, it->map_bytes);)
      munmap(it->map, it->map_bytes);
      allocs.erase(it);
      return;
    }
}

void check_buffers() {
  for (auto& a : allocs) {
    for (char* q = a.map + kPage; q < a.map + a.map_bytes - kPage; q++) {
      if (q == a.p) q += a.bytes;
      if (q < a.map + a.map_bytes - kPage && *q != (char)kCanary) {
        long at = q - a.p;
        *q = (char)kCanary;
        throw Error("cuda_host: a kernel wrote byte " + std::to_string(at) + " of '" + a.name + "' which has " +
                    std::to_string(a.bytes) + " bytes");
      }
    }
  }
}
}  // namespace cuda_host

extern "C" __attribute__((used, visibility("default"))) void __ubsan_on_report() {
  cuda_host::on_death();
}  // UBSan has no death callback
