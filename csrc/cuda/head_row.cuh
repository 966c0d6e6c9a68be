// A thread's part of a head's row: the numbers [i, i + kWidth) of both halves, which the rotation pairs, for kSteps
// places i. Plain CUDA C++ without torch headers.
#pragma once
#include <cstdint>

#include "csrc/cuda/vector_io.cuh"

namespace satformer::ops::cuda {

template <int kWidth, int kSteps>
struct HeadRow {
  float first[kSteps][kWidth], second[kSteps][kWidth];  // of the two halves
};

// f(step, i) for this thread's places i of a half. Unrolled, so that rows stay in registers.
template <int kWidth, int kSteps, typename Function>
__device__ __forceinline__ void each_step(int lane, int lanes, int half, const Function& f) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int i = (step * lanes + lane) * kWidth;
    if (i < half) f(step, i);
  }
}

template <int kWidth, int kSteps, typename T>
__device__ __forceinline__ void load_row(HeadRow<kWidth, kSteps>& row, const T* data, int lane, int lanes, int half) {
  each_step<kWidth, kSteps>(lane, lanes, half, [&](int step, int i) {
    load_numbers(row.first[step], data + i);
    load_numbers(row.second[step], data + half + i);
  });
}

template <int kWidth, int kSteps, typename T>
__device__ __forceinline__ void store_row(T* data, const HeadRow<kWidth, kSteps>& row, int lane, int lanes, int half) {
  each_step<kWidth, kSteps>(lane, lanes, half, [&](int step, int i) {
    store_numbers(data + i, row.first[step]);
    store_numbers(data + half + i, row.second[step]);
  });
}

// row = RoPE(row); with direction -1 the rotation back.
template <int kWidth, int kSteps>
__device__ __forceinline__ void rotate_row(HeadRow<kWidth, kSteps>& row, const float* cos, const float* sin,
                                           float direction, int lane, int lanes, int half) {
  each_step<kWidth, kSteps>(lane, lanes, half, [&](int step, int i) {
    float c[kWidth], s[kWidth];
    load_numbers(c, cos + i);
    load_numbers(s, sin + i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float x1 = row.first[step][j], x2 = row.second[step][j], sine = direction * s[j];
      row.first[step][j] = x1 * c[j] - x2 * sine;
      row.second[step][j] = x2 * c[j] + x1 * sine;
    }
  });
}

// f(number, ...) on the numbers of rows of the same shape, this thread's alone.
template <int kWidth, int kSteps, typename Function, typename... Rows>
__device__ __forceinline__ void each_number(int lane, int lanes, int half, const Function& f, Rows&... rows) {
  each_step<kWidth, kSteps>(lane, lanes, half, [&](int step, int) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      f(rows.first[step][j]...);
      f(rows.second[step][j]...);
    }
  });
}

}  // namespace satformer::ops::cuda
