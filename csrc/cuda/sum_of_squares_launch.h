#pragma once
// What sum_of_squares.cpp hands to the launcher of sum_of_squares.cu. No torch headers.
#include <cuda_runtime_api.h>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

constexpr int64_t kSumOfSquaresBlock = 16384;  // numbers a block adds

struct SquaredNumbers {
  FlatNumbers<const void*> numbers;
  int64_t n;
};

// partial_sums: scratch, one for each of flat_blocks(n, kSumOfSquaresBlock) over all tensors; sum: [1].
cudaError_t launch_sum_of_squares(const SquaredNumbers* tensors, int64_t count, double* partial_sums, double* sum,
                                  cudaStream_t stream);

}  // namespace satformer::ops::cuda
