// The CUDA kernel of linear_cross_entropy: a block a token. The first pass over its V logits finds the largest and the
// sum of exponentials at once, the second, with the row still in the second-level cache, writes the gradients.
#pragma once
#include "csrc/cuda/linear_cross_entropy_launch.h"
#include "csrc/cuda/rows.cuh"

namespace satformer::ops::cuda {

constexpr int kLogitThreads = 512;

// The largest of the numbers seen and the sum of exp(x - largest); NaN where one was NaN.
struct RunningSum {
  float largest = -INFINITY, sum = 0.f;

  __device__ __forceinline__ void add(const float (&x)[kEight]) {
    float next = largest;
#pragma unroll
    for (int k = 0; k < kEight; ++k) next = Larger()(next, x[k]);
    sum *= shrink(next);
#pragma unroll
    for (int k = 0; k < kEight; ++k) sum += x[k] == -INFINITY ? 0.f : expf(x[k] - next);
    largest = next;
  }
  // What the sum must be multiplied by when `next` is the largest.
  __device__ __forceinline__ float shrink(float next) const {
    return largest == -INFINITY ? 1.f : expf(largest - next);
  }
};

template <typename T>
__global__ void __launch_bounds__(kLogitThreads) logit_rows_kernel(LogitArguments a) {
  __shared__ float scratch[kMostWarps];
  const int64_t row = blockIdx.x, first = static_cast<int64_t>(threadIdx.x) * kEight;
  const int64_t step = static_cast<int64_t>(kLogitThreads) * kEight;
  T* logits = static_cast<T*>(a.logits.data) + row * a.logits.stride;
  const int64_t target = a.targets[row];
  if (target == a.ignore_index) {
    if (threadIdx.x == 0) a.losses[row] = 0.f;
    const float zeros[kEight] = {};
    for (int64_t j = first; a.with_gradients && j < a.V; j += step) {
      store_up_to(logits + j, zeros, a.V - j, a.logits.on_grid);
    }
    return;
  }
  // A kernel cannot throw: a target out of range makes its loss and gradients NaN.
  const bool in_range = target >= 0 && target < a.V;
  const float scale = in_range ? a.scale : NAN;
  const float of_target = in_range ? to_float(logits[target]) : 0.f;
  RunningSum running;
  for (int64_t j = first; j < a.V; j += step) {
    float x[kEight];
    load_up_to(x, logits + j, a.V - j, a.logits.on_grid);
#pragma unroll
    for (int k = 0; k < kEight; ++k) x[k] = j + k < a.V ? x[k] : -INFINITY;
    running.add(x);
  }
  const float largest = row_max(running.largest, scratch);  // its barriers come after every read of the target's logit
  const float sum = row_sum(running.sum * running.shrink(largest), scratch);
  if (threadIdx.x == 0) a.losses[row] = scale * (logf(sum) + (largest - of_target));
  if (!a.with_gradients) return;
  const float factor = scale / sum;
  for (int64_t j = first; j < a.V; j += step) {
    float x[kEight];
    load_up_to(x, logits + j, a.V - j, a.logits.on_grid);
#pragma unroll
    for (int k = 0; k < kEight; ++k) x[k] = expf(x[k] - largest) * factor - (j + k == target ? scale : 0.f);
    store_up_to(logits + j, x, a.V - j, a.logits.on_grid);
  }
}

}  // namespace satformer::ops::cuda
