// CUDA kernels of rms_norm (formulas: csrc/ops/rms_norm.h). blockDim.x threads, whole warps, share a row: each holds
// eight numbers of it in registers, so that every tensor is read and written once. A block has blockDim.y such groups.
// Groups past the last row work on the last one and write nothing, because all threads must reach the barriers.
#pragma once
#include "csrc/cuda/rms_norm_launch.h"
#include "csrc/cuda/rows.cuh"

namespace satformer::ops::cuda {

static __global__ void __launch_bounds__(1024) norm_kernel(NormArguments a) {
  __shared__ float scratch[kMostWarps];
  const int64_t place = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool writes = place < a.rows;
  const int64_t row = writes ? place : a.rows - 1, begin = static_cast<int64_t>(threadIdx.x) * kEight;
  const bool within = begin < a.n;
  float x[kEight] = {};
  if (within) {
    load(x, a.x, row, begin, a.n);
    if (a.residual.data) {
      float residual[kEight];
      load(residual, a.residual, row, begin, a.n);
#pragma unroll
      for (int k = 0; k < kEight; ++k) x[k] = round_to(a.sum.dtype, x[k] + residual[k]);
      if (writes) store(a.sum, x, row, begin, a.n);
    }
  }
  float inverse;
  if (a.given_inverse) {
    inverse = a.given_inverse[row];
  } else {
    float squares = 0.f;
#pragma unroll
    for (int k = 0; k < kEight; ++k) squares = fmaf(x[k], x[k], squares);
    inverse = 1.f / sqrtf(row_sum(squares, scratch) / static_cast<float>(a.n) + a.eps);
    if (writes && threadIdx.x == 0) a.inverse_rms[row] = inverse;
  }
  if (!within || !writes) return;
  float weight[kEight];
  load(weight, a.weight, 0, begin, a.n);
#pragma unroll
  for (int k = 0; k < kEight; ++k) x[k] = x[k] * inverse * weight[k];
  store(a.y, x, row, begin, a.n);
}

// Group g of the grid takes the rows [g rows_a_block, (g + 1) rows_a_block) one after the other and keeps its part of
// grad_weight in registers, which it writes to row g of partial_sums.
static __global__ void __launch_bounds__(1024) norm_backward_kernel(NormBackwardArguments a) {
  __shared__ float scratch[kMostWarps];
  const int64_t group = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const int64_t begin = static_cast<int64_t>(threadIdx.x) * kEight;
  const bool within = begin < a.n;
  float weight[kEight] = {}, sums[kEight] = {};
  if (within) load(weight, a.weight, 0, begin, a.n);
  for (int64_t i = 0; i < a.rows_a_block; ++i) {
    const int64_t place = group * a.rows_a_block + i;
    const bool writes = place < a.rows && within;
    const int64_t row = place < a.rows ? place : a.rows - 1;
    float x[kEight] = {}, grad[kEight] = {}, through[kEight] = {};
    if (within) {  // all that the row needs is on its way before the first barrier
      load(x, a.x, row, begin, a.n);
      load(grad, a.grad_y, row, begin, a.n);
      if (a.grad_sum.data) load(through, a.grad_sum, row, begin, a.n);
    }
    const float inverse = a.inverse_rms[row];
    float dot = 0.f;
#pragma unroll
    for (int k = 0; k < kEight; ++k) {
      const float product = grad[k] * x[k];
      dot = fmaf(product, weight[k], dot);
      if (writes) sums[k] = fmaf(product, inverse, sums[k]);
    }
    const float slope = inverse * inverse * (row_sum(dot, scratch) / static_cast<float>(a.n));
    if (!writes) continue;
#pragma unroll
    for (int k = 0; k < kEight; ++k) x[k] = fmaf(inverse, fmaf(-slope, x[k], grad[k] * weight[k]), through[k]);
    store(a.grad_x, x, row, begin, a.n);
    if (a.grad_residual.data) store(a.grad_residual, x, row, begin, a.n);
  }
  if (within && group * a.rows_a_block < a.rows) {
    const bool on_grid = a.n % 4 == 0;  // partial_sums itself comes from the allocator
    store({a.partial_sums, DType::kFloat32, a.n, on_grid}, sums, group, begin, a.n);
  }
}

constexpr int kColumns = 32, kSummers = 8;

// grad_weight = the sum of partial_sums' rows: a warp reads 32 neighbouring columns, kSummers of them share the rows.
static __global__ void __launch_bounds__(kColumns* kSummers) sum_partial_kernel(NormBackwardArguments a) {
  __shared__ float parts[kSummers][kColumns];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  const int64_t blocks = (a.rows + a.rows_a_block - 1) / a.rows_a_block;
  float sum = 0.f;
  if (column < a.n) {
    for (int64_t i = threadIdx.y; i < blocks; i += kSummers) sum += a.partial_sums[i * a.n + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= a.n) return;
  for (int y = 1; y < kSummers; ++y) sum += parts[y][threadIdx.x];
  store_number(a.grad_weight.data, a.grad_weight.dtype, column, sum);
}

}  // namespace satformer::ops::cuda
