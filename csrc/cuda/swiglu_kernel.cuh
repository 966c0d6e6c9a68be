// CUDA kernels of swiglu (formulas: csrc/ops/swiglu.h): a thread makes eight neighbouring numbers of a row.
#pragma once
#include "csrc/cuda/rows.cuh"
#include "csrc/cuda/swiglu_launch.h"

namespace satformer::ops::cuda {

constexpr int kSwigluThreads = 256;

// Where a thread works; row -1 past the end.
struct Piece {
  int64_t row, begin;
};
__device__ __forceinline__ Piece piece_of_thread(int64_t rows, int64_t f) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                pieces = (f + kEight - 1) / kEight;
  const int64_t row = thread / pieces;
  return {row < rows ? row : -1, (thread - row * pieces) * kEight};
}

static __global__ void __launch_bounds__(kSwigluThreads) swiglu_kernel(SwigluArguments a) {
  const Piece piece = piece_of_thread(a.rows, a.f);
  if (piece.row < 0) return;
  float gate[kEight], up[kEight];
  load(gate, a.gate, piece.row, piece.begin, a.f);
  load(up, a.up, piece.row, piece.begin, a.f);
#pragma unroll
  for (int k = 0; k < kEight; ++k) up[k] = gate[k] * sigmoid(gate[k]) * up[k];
  store(a.y, up, piece.row, piece.begin, a.f);
}

static __global__ void __launch_bounds__(kSwigluThreads) swiglu_backward_kernel(SwigluBackwardArguments a) {
  const Piece piece = piece_of_thread(a.rows, a.f);
  if (piece.row < 0) return;
  float gate[kEight], up[kEight], grad[kEight];
  load(gate, a.gate, piece.row, piece.begin, a.f);
  load(up, a.up, piece.row, piece.begin, a.f);
  load(grad, a.grad, piece.row, piece.begin, a.f);
  float y[kEight];
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    const float s = sigmoid(gate[k]), silu = gate[k] * s;
    y[k] = silu * up[k];
    gate[k] = grad[k] * up[k] * fmaf(silu, 1.f - s, s);
    up[k] = grad[k] * silu;
  }
  store(a.grad_gate, gate, piece.row, piece.begin, a.f);
  store(a.grad_up, up, piece.row, piece.begin, a.f);
  if (a.y.data) store(a.y, y, piece.row, piece.begin, a.f);
}

}  // namespace satformer::ops::cuda
