// CUDA kernels of sum_of_squares (formula: csrc/ops/sum_of_squares.h), in two stages: every block adds the squares of
// up to kSumOfSquaresBlock numbers of one tensor, then a single block adds the blocks' sums. Which thread adds what,
// and in which order, depends on the sizes alone.
#pragma once
#include "csrc/cuda/flat_list.cuh"
#include "csrc/cuda/sum_of_squares_launch.h"

namespace satformer::ops::cuda {

constexpr int kMostSquared = 144;  // tensors a launch

struct SumOfSquaresTable {
  FlatNumbers<const void*> numbers[kMostSquared];
  int64_t n[kMostSquared];
  int first_block[kMostSquared];
  int count;
  double* partial_sums;  // of this launch's blocks
};
static_assert(sizeof(SumOfSquaresTable) <= kArgumentBytes, "a launch's arguments");

// The sum over the block's threads, in a fixed order; thread 0 has it.
__device__ __forceinline__ double block_sum(double x) {
  __shared__ double of_warps[kFlatThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_xor_sync(kFullMask, x, offset);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
#pragma unroll
  for (const double of_warp : of_warps) sum += of_warp;
  return sum;
}

static __global__ void __launch_bounds__(kFlatThreads) sum_of_squares_kernel(SumOfSquaresTable table) {
  const int block = static_cast<int>(blockIdx.x), tensor = tensor_of_block(table, block);
  const int64_t begin = (block - table.first_block[tensor]) * kSumOfSquaresBlock, n = table.n[tensor];
  const int64_t end = begin + kSumOfSquaresBlock < n ? begin + kSumOfSquaresBlock : n;
  const FlatNumbers<const void*> numbers = table.numbers[tensor];
  double sum = 0;
  for (int64_t i = begin + static_cast<int64_t>(threadIdx.x) * kEight; i < end; i += kFlatThreads * kEight) {
    double x[kEight];
    load(x, numbers, i, n);
#pragma unroll
    for (int k = 0; k < kEight; ++k) sum += x[k] * x[k];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) table.partial_sums[block] = sum;
}

static __global__ void __launch_bounds__(kFlatThreads)
    add_partial_sums_kernel(const double* partial_sums, int64_t count, double* result) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kFlatThreads) sum += partial_sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

}  // namespace satformer::ops::cuda
