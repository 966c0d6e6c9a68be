#pragma once
// What rms_norm.cpp hands to the launchers of rms_norm.cu. Formulas: csrc/ops/rms_norm.h. No torch headers.
#include <cuda_runtime_api.h>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

// A thread holds eight numbers of a row, a block at most 1024 threads: longer rows are not for these kernels.
constexpr int64_t kLongestNormRow = 8192;

struct NormArguments {
  int64_t rows, n;  // n from 1 to kLongestNormRow
  Input x, residual;
  Input weight;  // one row, float32
  float eps;
  Output sum, y;               // sum absent without a residual
  float* inverse_rms;          // [rows], written
  const float* given_inverse;  // [rows], or null; where given, y is made with it and inverse_rms is not written
};

struct NormBackwardArguments {
  int64_t rows, n, rows_a_block;
  Input grad_y, grad_sum, x;
  Input weight;              // one row, float32
  const float* inverse_rms;  // [rows]
  Output grad_x, grad_residual;
  float* partial_sums;  // [blocks, n], blocks = rows / rows_a_block, rounded up
  Output grad_weight;   // one row
};

cudaError_t launch_norm(const NormArguments& arguments, cudaStream_t stream);
cudaError_t launch_norm_backward(const NormBackwardArguments& arguments, cudaStream_t stream);

}  // namespace satformer::ops::cuda
