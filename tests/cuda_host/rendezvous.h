#pragma once
// The device functions at which threads meet: barriers, shuffles, votes, warp reductions. Each carries the place of its
// call, which the engine compares between threads and names in errors.
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cuda_host {

enum class Op : std::uint8_t {
  kNone,
  kSyncthreads,
  kSyncthreadsCount,
  kSyncthreadsAnd,
  kSyncthreadsOr,
  kSyncwarp,  // from here on within a warp
  kShfl,
  kShflUp,
  kShflDown,
  kShflXor,
  kBallot,
  kAny,
  kAll,
  kMatchAny,
  kAdd,
  kMin,
  kMax,
  kUnsignedMin,
  kUnsignedMax,
  kAnd,
  kOr,
  kXor,
};

struct Site {
  const char* file;
  int line;
};

struct WarpCall {
  unsigned mask;
  std::uint64_t value = 0;
  int argument = 0;  // lane, delta or lane mask of a shuffle
  int width = 32;
};

// Waits for all threads of the block / for the lanes of the mask, and gives the calling thread's result.
std::uint64_t meet_block(Op op, std::uint64_t value, Site site);
std::uint64_t meet_warp(Op op, const WarpCall& call, Site site);
unsigned active_mask();

template <typename T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}

}  // namespace cuda_host

#define CUDA_HOST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

#define CUDA_HOST_BARRIER(name, op)                                                                  \
  inline int name(int predicate, CUDA_HOST_SITE) {                                                   \
    return static_cast<int>(cuda_host::meet_block(cuda_host::Op::op, predicate != 0, {file, line})); \
  }
inline void __syncthreads(CUDA_HOST_SITE) { cuda_host::meet_block(cuda_host::Op::kSyncthreads, 0, {file, line}); }
CUDA_HOST_BARRIER(__syncthreads_count, kSyncthreadsCount)
CUDA_HOST_BARRIER(__syncthreads_and, kSyncthreadsAnd)
CUDA_HOST_BARRIER(__syncthreads_or, kSyncthreadsOr)
#undef CUDA_HOST_BARRIER

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_HOST_SITE) {
  cuda_host::meet_warp(cuda_host::Op::kSyncwarp, {mask}, {file, line});
}
inline unsigned __activemask() { return cuda_host::active_mask(); }

#define CUDA_HOST_SHUFFLE(name, op, argument_t)                                                         \
  template <typename T>                                                                                 \
  T name(unsigned mask, T value, argument_t argument, int width = 32, CUDA_HOST_SITE) {                 \
    const cuda_host::WarpCall call{mask, cuda_host::to_bits(value), static_cast<int>(argument), width}; \
    return cuda_host::from_bits<T>(cuda_host::meet_warp(cuda_host::Op::op, call, {file, line}));        \
  }
CUDA_HOST_SHUFFLE(__shfl_sync, kShfl, int)
CUDA_HOST_SHUFFLE(__shfl_up_sync, kShflUp, unsigned)
CUDA_HOST_SHUFFLE(__shfl_down_sync, kShflDown, unsigned)
CUDA_HOST_SHUFFLE(__shfl_xor_sync, kShflXor, int)
#undef CUDA_HOST_SHUFFLE

#define CUDA_HOST_VOTE(name, result_t, op)                                                                       \
  inline result_t name(unsigned mask, int predicate, CUDA_HOST_SITE) {                                           \
    return static_cast<result_t>(cuda_host::meet_warp(cuda_host::Op::op, {mask, predicate != 0}, {file, line})); \
  }
CUDA_HOST_VOTE(__ballot_sync, unsigned, kBallot)
CUDA_HOST_VOTE(__any_sync, int, kAny)
CUDA_HOST_VOTE(__all_sync, int, kAll)
#undef CUDA_HOST_VOTE

template <typename T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_HOST_SITE) {
  const cuda_host::WarpCall call{mask, cuda_host::to_bits(value)};
  return static_cast<unsigned>(cuda_host::meet_warp(cuda_host::Op::kMatchAny, call, {file, line}));
}

#define CUDA_HOST_REDUCE(name, T, op)                                                                                \
  inline T name(unsigned mask, T value, CUDA_HOST_SITE) {                                                            \
    return static_cast<T>(cuda_host::meet_warp(cuda_host::Op::op, {mask, cuda_host::to_bits(value)}, {file, line})); \
  }
CUDA_HOST_REDUCE(__reduce_add_sync, unsigned, kAdd)
CUDA_HOST_REDUCE(__reduce_add_sync, int, kAdd)
CUDA_HOST_REDUCE(__reduce_min_sync, unsigned, kUnsignedMin)
CUDA_HOST_REDUCE(__reduce_min_sync, int, kMin)
CUDA_HOST_REDUCE(__reduce_max_sync, unsigned, kUnsignedMax)
CUDA_HOST_REDUCE(__reduce_max_sync, int, kMax)
CUDA_HOST_REDUCE(__reduce_and_sync, unsigned, kAnd)
CUDA_HOST_REDUCE(__reduce_or_sync, unsigned, kOr)
CUDA_HOST_REDUCE(__reduce_xor_sync, unsigned, kXor)
#undef CUDA_HOST_REDUCE
#undef CUDA_HOST_SITE
