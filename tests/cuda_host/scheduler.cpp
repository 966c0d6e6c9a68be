// Runs a grid block by block. A fiber takes one thread after another and stays occupied only while its thread waits at
// a rendezvous, so that kernels without barriers use one fiber and no switch. The last thread to arrive at a rendezvous
// completes it. The engine is compiled without sanitizers.
#include <cstdlib>
#include <random>

#include "tests/cuda_host/block.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_host {

Options options;
Block running_block;

namespace {

constexpr unsigned kMaxThreads = 1024, kMaxThreadsZ = 64, kMaxBlocksYZ = 65535;

// What runs: set by run_grid().
void (*thread_body)(void*) = nullptr;
void* thread_data = nullptr;
bool launched = false;
std::string failure;  // why the launch was given up

Context outside;  // the context that called run_grid()
Fiber* running = nullptr;
std::mt19937 generator;
std::vector<unsigned> order;  // of the threads, as last drawn
std::vector<unsigned> queue;  // threads that can run, from head on
size_t head = 0;
constexpr unsigned kNobody = ~0u;
unsigned chosen = kNobody;  // taken from the queue, to run next

bool one_warp_ahead() { return options.order == Order::kRandom && options.seed % 2 == 1; }

// Not std::shuffle, whose draws differ between libraries.
template <typename Iterator>
void shuffle(Iterator begin, Iterator end) {
  for (auto n = static_cast<size_t>(end - begin); n > 1; --n) std::swap(begin[n - 1], begin[generator() % n]);
}

bool take_next(unsigned& thread) {
  if (chosen != kNobody) {
    thread = chosen;
    chosen = kNobody;
    return true;
  }
  if (head == queue.size()) {
    queue.clear();
    head = 0;
    return false;
  }
  if (one_warp_ahead()) {  // the last to become ready goes on
    thread = queue.back();
    queue.pop_back();
    return true;
  }
  if (options.order == Order::kRandom) std::swap(queue[head], queue[head + generator() % (queue.size() - head)]);
  thread = queue[head++];
  return true;
}

void set_current(unsigned thread) {
  running_block.current = thread;
  threadIdx = running_block.threads[thread].index;
}

void enter();

// The running fiber goes on elsewhere: its thread waits, or is done. Returns when the fiber is needed again, at once
// where a done thread's fiber can take a fresh one.
void reschedule(bool waits) {
  unsigned next = 0;
  if (!take_next(next)) {
    if (running_block.done != running_block.size()) throw Error(describe_deadlock());
    give_back(running);
    switch_context(*running, outside);
    return;  // the next block starts this fiber again
  }
  Thread& thread = running_block.threads[next];
  Fiber* self = running;
  if (thread.state == State::kFresh) {
    chosen = next;
    if (!waits) return;
    running = take_fiber(enter);
  } else {
    set_current(next);
    running = thread.fiber;
    if (!waits) give_back(self);
  }
  switch_context(*self, *running);
}

// What a fiber does: it takes fresh threads as long as there are any.
void run_threads() {
  for (;;) {
    unsigned next = 0;
    while (take_next(next)) {
      Thread& thread = running_block.threads[next];
      if (thread.state != State::kFresh) {  // one that waited can go on, on its own fiber
        chosen = next;
        reschedule(false);
        continue;
      }
      thread.state = State::kReady;
      thread.fiber = running;
      set_current(next);
      thread_body(thread_data);
      thread.state = State::kDone;
      ++running_block.done;
      running_block.lanes_gone[next / kWarpLanes] |= 1u << (next % kWarpLanes);
    }
    reschedule(false);
  }
}

void enter() {
  enter_fiber(outside);
  try {
    run_threads();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  switch_context(*running, outside);  // the launch is given up; the other fibers' frames are abandoned
  std::abort();
}

void start_block(unsigned threads) {
  Block& block = running_block;
  block.threads.resize(threads);
  block.done = block.at_barrier = 0;
  for (unsigned w = 0; w < kMaxWarps; ++w) {
    const unsigned first = w * kWarpLanes;
    block.lanes_waiting[w] = 0;
    block.lanes_gone[w] = first >= threads ? ~0u : first + kWarpLanes <= threads ? 0 : ~0u << (threads % kWarpLanes);
  }
  queue.clear();
  head = 0;
  chosen = kNobody;
  for (const unsigned i : draw_order()) {
    block.threads[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
    block.threads[i].state = State::kFresh;
    queue.push_back(i);
  }
}

void run_block(unsigned threads, size_t shared_bytes) {
  prepare_shared(shared_bytes);
  races_new_block();
  start_block(threads);
  running = take_fiber(enter);
  switch_context(outside, *running);
  running = nullptr;
  if (!failure.empty()) {
    recycle_fibers(enter);
    throw Error(failure);
  }
  check_shared(shared_bytes);
  races_check();
}

}  // namespace

void make_ready(unsigned thread) {
  running_block.threads[thread].state = State::kReady;
  queue.push_back(thread);
}

void wait_until_ready() { reschedule(true); }

const std::vector<unsigned>& draw_order() {
  const unsigned threads = running_block.size(), warps = (threads + kWarpLanes - 1) / kWarpLanes;
  unsigned warp[kMaxWarps];
  for (unsigned k = 0; k < warps; ++k) warp[k] = options.order == Order::kReverse ? warps - 1 - k : k;
  if (one_warp_ahead()) shuffle(warp, warp + warps);
  order.clear();
  for (unsigned k = 0; k < warps; ++k) {
    const auto start = static_cast<std::ptrdiff_t>(order.size());
    const unsigned first = warp[k] * kWarpLanes;
    for (unsigned i = first; i < std::min(threads, first + kWarpLanes); ++i) order.push_back(i);
    if (one_warp_ahead()) {
      shuffle(order.begin() + start, order.end());
    } else if (options.order == Order::kReverse) {
      std::reverse(order.begin() + start, order.end());
    }
  }
  return order;
}

bool is_running() { return running != nullptr; }

void run_grid(dim3 blocks, dim3 threads, size_t shared_bytes, void (*body)(void*), void* data) {
  const auto require = [](bool good, const char* what) {
    if (!good) throw Error(std::string("cuda_host: ") + what);
  };
  const size_t size = static_cast<size_t>(threads.x) * threads.y * threads.z;
  require(!launched, "a launch within a launch");
  require(size > 0 && size <= kMaxThreads && threads.z <= kMaxThreadsZ, "a block must have 1 to 1024 threads");
  require(blocks.x > 0 && blocks.y > 0 && blocks.z > 0, "a launch without blocks");
  require(blocks.x <= 0x7fffffffu && blocks.y <= kMaxBlocksYZ && blocks.z <= kMaxBlocksYZ, "too many blocks");
  install_fault_handlers();
  thread_body = body;
  thread_data = data;
  gridDim = blocks;
  blockDim = threads;
  generator.seed(options.seed);
  failure.clear();
  launched = true;
  struct Finish {
    ~Finish() { launched = false; }
  } const finish;
  races_new_launch(shared_bytes);
  for (unsigned z = 0; z < blocks.z; ++z) {
    for (unsigned y = 0; y < blocks.y; ++y) {
      for (unsigned x = 0; x < blocks.x; ++x) {
        blockIdx = {x, y, z};
        run_block(static_cast<unsigned>(size), shared_bytes);
      }
    }
  }
  check_canaries();
}

}  // namespace cuda_host
