// Barriers and warp operations: who waits, when they are complete, what each thread gets.
#include <cstdio>
#include <cstring>

#include "tests/cuda_host/block.h"

namespace cuda_host {
namespace {

const char* name_of(Op op) {
  constexpr const char* kNames[] = {"?",
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
  return kNames[static_cast<int>(op)];
}

std::string where(const Thread& thread) {
  return "thread " + text_of(thread.index) + " at " + name_of(thread.op) + " " + thread.site.file + ":" +
         std::to_string(thread.site.line);
}

[[noreturn]] void fail(const std::string& text) { throw Error("cuda_host: block " + text_of(blockIdx) + ": " + text); }

bool same_call(const Thread& a, const Thread& b) {
  return a.op == b.op && a.site.line == b.site.line && std::strcmp(a.site.file, b.site.file) == 0;
}

Thread& current() { return running_block.threads[running_block.current]; }

void complete_barrier() {
  const Thread& last = current();
  unsigned true_predicates = 0;
  for (const Thread& thread : running_block.threads) {
    if (thread.state == State::kDone) fail(describe_deadlock());
    if (!same_call(thread, last)) fail("divergent barrier: " + where(last) + " while " + where(thread));
    true_predicates += thread.call.value != 0;
  }
  std::uint64_t result = true_predicates != 0;
  if (last.op == Op::kSyncthreadsCount) result = true_predicates;
  if (last.op == Op::kSyncthreadsAnd) result = true_predicates == running_block.size();
  running_block.at_barrier = 0;
  races_barrier();
  for (const unsigned i : draw_order()) {
    running_block.threads[i].result = result;
    if (i != running_block.current) make_ready(i);
  }
}

std::uint64_t reduced(Op op, std::uint64_t a, std::uint64_t b) {
  const auto smaller = [](auto x, auto y) { return static_cast<std::uint64_t>(y < x ? y : x); };
  const auto larger = [](auto x, auto y) { return static_cast<std::uint64_t>(x < y ? y : x); };
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kAnd:
      return a & b;
    case Op::kOr:
      return a | b;
    case Op::kXor:
      return a ^ b;
    case Op::kMin:
      return smaller(static_cast<int>(a), static_cast<int>(b));
    case Op::kMax:
      return larger(static_cast<int>(a), static_cast<int>(b));
    case Op::kUnsignedMin:
      return smaller(a, b);
    case Op::kUnsignedMax:
      return larger(a, b);
    default:
      return 0;
  }
}

// The lane from which a shuffle reads; its own where that lies outside its segment.
unsigned source_lane(const Thread& thread, unsigned lane) {
  const auto width = static_cast<unsigned>(thread.call.width), argument = static_cast<unsigned>(thread.call.argument);
  const unsigned low = lane & ~(width - 1), high = low + width - 1;
  switch (thread.op) {
    case Op::kShfl:
      return low + (argument & (width - 1));
    case Op::kShflUp:
      return argument > lane - low ? lane : lane - argument;
    case Op::kShflDown:
      return argument > high - lane ? lane : lane + argument;
    default:
      return (lane ^ argument) > high ? lane : lane ^ argument;
  }
}

bool is_shuffle(Op op) { return op >= Op::kShfl && op <= Op::kShflXor; }

// What the lanes of a warp give to an operation.
struct Gathered {
  unsigned mask, predicates = 0;
  std::uint64_t reduction = 0;
};

Gathered gather(const Thread* lanes, const Thread& last) {
  Gathered all{last.call.mask};
  bool first = true;
  for (unsigned l = 0; l < kWarpLanes; ++l) {
    if ((all.mask >> l & 1) == 0) continue;
    const std::uint64_t value = lanes[l].call.value;
    if (value != 0) all.predicates |= 1u << l;
    all.reduction = first ? value : reduced(last.op, all.reduction, value);
    first = false;
  }
  return all;
}

std::uint64_t result_of(const Thread* lanes, unsigned lane, const Gathered& all) {
  const Thread& thread = lanes[lane];
  if (is_shuffle(thread.op)) {
    const unsigned source = source_lane(thread, lane) % kWarpLanes;
    if ((all.mask >> source & 1) == 0) {
      fail(where(thread) + " reads lane " + std::to_string(source) + " which its mask does not name");
    }
    return lanes[source].call.value;
  }
  switch (thread.op) {
    case Op::kBallot:
      return all.predicates;
    case Op::kAny:
      return all.predicates != 0;
    case Op::kAll:
      return all.predicates == all.mask;
    case Op::kMatchAny: {
      unsigned same = 0;
      for (unsigned l = 0; l < kWarpLanes; ++l) {
        if ((all.mask >> l & 1) != 0 && lanes[l].call.value == thread.call.value) same |= 1u << l;
      }
      return same;
    }
    default:
      return all.reduction;
  }
}

// Completes the warp operation at which the running thread is, if every lane of its mask has arrived.
bool try_complete_warp_operation() {
  const Thread& last = current();
  const unsigned warp = running_block.current / kWarpLanes, mask = last.call.mask;
  if ((mask & ~running_block.lanes_waiting[warp]) != 0) return false;
  Thread* lanes = running_block.threads.data() + static_cast<size_t>(warp) * kWarpLanes;
  for (unsigned l = 0; l < kWarpLanes; ++l) {
    if ((mask >> l & 1) == 0) continue;
    const bool same_mask = lanes[l].call.mask == mask;
    if (same_mask && same_call(lanes[l], last)) continue;
    fail("divergent warp operation: " + where(last) + " while " + where(lanes[l]) +
         (same_mask ? "" : " with another mask"));
  }
  running_block.lanes_waiting[warp] &= ~mask;
  if (last.op == Op::kSyncwarp) races_syncwarp(warp);
  const Gathered all = gather(lanes, last);
  for (unsigned k = 0; k < kWarpLanes; ++k) {
    const unsigned l = options.order == Order::kReverse ? kWarpLanes - 1 - k : k;
    if ((mask >> l & 1) == 0) continue;
    lanes[l].result = result_of(lanes, l, all);
    if (&lanes[l] != &last) make_ready(warp * kWarpLanes + l);
  }
  return true;
}

// The running thread arrives; returns its result when the rendezvous is complete.
template <typename TryComplete>
std::uint64_t rendezvous(Op op, const WarpCall& call, Site site, const TryComplete& try_complete) {
  const unsigned self = running_block.current;
  Thread& thread = current();
  thread.op = op;
  thread.call = call;
  thread.site = site;
  thread.state = State::kWaits;
  if (try_complete()) {
    thread.state = State::kReady;
  } else {
    wait_until_ready();
  }
  return running_block.threads[self].result;
}

}  // namespace

std::string text_of(uint3 index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," + std::to_string(index.z) + ")";
}

std::string running_place() { return "block " + text_of(blockIdx) + " thread " + text_of(threadIdx); }

std::string describe_deadlock() {
  struct Group {
    const Thread* first;
    unsigned warp, count;
  };
  std::vector<Group> groups;
  for (unsigned i = 0; i < running_block.size(); ++i) {
    const Thread& thread = running_block.threads[i];
    const bool done = thread.state == State::kDone;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return (g.first->state == State::kDone) == done && (done || same_call(*g.first, thread));
    });
    if (group == groups.end()) group = groups.insert(group, {&thread, i / kWarpLanes, 0});
    ++group->count;
  }
  std::string text = "cuda_host: block " + text_of(blockIdx) + ": threads wait for ever:";
  for (const Group& group : groups) {
    const bool done = group.first->state == State::kDone;
    text += "\n  " + std::to_string(group.count) +
            (done ? " returned, first thread " + text_of(group.first->index) : ", first " + where(*group.first));
    if (done || group.first->op < Op::kSyncwarp) continue;
    const unsigned mask = group.first->call.mask;
    char masks[80];
    std::snprintf(masks, sizeof masks, " mask %08x, of these returned or absent %08x", mask,
                  mask & running_block.lanes_gone[group.warp]);
    text += masks;
  }
  return text;
}

unsigned active_mask() { return ~running_block.lanes_gone[running_block.current / kWarpLanes]; }

std::uint64_t meet_block(Op op, std::uint64_t value, Site site) {
  return rendezvous(op, {0, value}, site, [] {
    if (++running_block.at_barrier + running_block.done != running_block.size()) return false;
    complete_barrier();
    return true;
  });
}

std::uint64_t meet_warp(Op op, const WarpCall& call, Site site) {
  return rendezvous(op, call, site, [] {
    const unsigned warp = running_block.current / kWarpLanes, lane = running_block.current % kWarpLanes;
    const WarpCall& made = current().call;
    if ((made.mask >> lane & 1) == 0) fail(where(current()) + ": the mask does not name the calling thread");
    if (made.width < 1 || made.width > 32 || (made.width & (made.width - 1)) != 0) {
      fail(where(current()) + ": the width must be a power of two up to 32, got " + std::to_string(made.width));
    }
    running_block.lanes_waiting[warp] |= 1u << lane;
    return try_complete_warp_operation();
  });
}

}  // namespace cuda_host
