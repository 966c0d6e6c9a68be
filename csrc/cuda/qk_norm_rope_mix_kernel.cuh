// The forward CUDA kernel of qk_norm_rope_mix (formulas: csrc/ops/qk_norm_rope_mix.h). Plain CUDA C++ without torch
// headers.
//
// A block works on rows of q alone, of k alone or of v alone, so that its warps do not diverge. `lanes` threads share a
// row; each holds its part of both halves in registers: one load and one store of q, k and v. With bfloat16 and hd 64,
// 4 lanes of 2 x 16 bytes hold a row. Where the factor before first values is 0, they are not loaded.
#pragma once
#include "csrc/cuda/gate.cuh"
#include "csrc/cuda/head_row.cuh"
#include "csrc/cuda/qk_norm_rope_mix_launch.h"

namespace satformer::ops::cuda {

// The factors before first_values and v.
struct MixFactors {
  float first, own;
  GateValue gate;  // selective
};

// Every thread of the warp must call it.
__device__ __forceinline__ MixFactors mix_factors(const AttentionPass& pass, const RowPlace& place) {
  switch (pass.mix) {
    case ValueMix::kSelective: {
      const Sizes sizes{pass.B, pass.T, pass.H_kv, pass.hd};
      const GateValue gate = gate_of_row(pass.gate, pass.logits, sizes, place, pass.lanes);
      return {gate.alpha, 1.f, gate};
    }
    case ValueMix::kStatic:
      return {*pass.lambda1, *pass.lambda2, {}};
    default:
      return {0.f, 1.f, {}};
  }
}

__device__ __forceinline__ const float* table_row(const Table& table, const RowPlace& place) {
  return table.data + place.b * table.stride_b + place.t * table.stride_t;
}

template <typename T>
__device__ __forceinline__ const T* row_of(const Source& source, const RowPlace& place) {
  return static_cast<const T*>(source.data) + row_start(source.strides, place);
}
template <typename T>
__device__ __forceinline__ T* row_of(const Target& target, const RowPlace& place) {
  return static_cast<T*>(target.data) + row_start(target.strides, place);
}

// 1 / sqrt(mean(x^2) + eps) of a row that `lanes` threads share. Every thread of the warp must call it.
__device__ __forceinline__ float inverse_rms(float squares, const AttentionPass& pass) {
  return rsqrtf(lanes_sum(squares, pass.lanes) / static_cast<float>(pass.hd) + pass.eps);
}

// A row of q or k.
template <typename T, int kWidth, int kSteps>
__device__ __forceinline__ void forward_head(const AttentionPass& pass, const Source& in, const Target& out,
                                             const float* weight, int64_t heads, int64_t thread) {
  const int lanes = pass.lanes, half = static_cast<int>(pass.hd / 2);
  const RowPlace place = place_of({pass.B, pass.T, heads, pass.hd}, lanes, thread);
  const int lane = place.lane;
  HeadRow<kWidth, kSteps> x;
  load_row(x, row_of<T>(in, place), lane, lanes, half);
  if (weight) {
    float squares = 0.f;
    each_number<kWidth, kSteps>(lane, lanes, half, [&](float a) { squares = fmaf(a, a, squares); }, x);
    const float r = inverse_rms(squares, pass);
    HeadRow<kWidth, kSteps> w;
    load_row(w, weight, lane, lanes, half);
    each_number<kWidth, kSteps>(lane, lanes, half, [r](float& a, float b) { a = a * r * b; }, x, w);
  }
  rotate_row(x, table_row(pass.cos, place), table_row(pass.sin, place), 1.f, lane, lanes, half);
  if (place.writes) store_row(row_of<T>(out, place), x, lane, lanes, half);
}

template <typename T, int kWidth, int kSteps>
__device__ __forceinline__ void forward_value(const MixInputsArguments& a, int64_t thread) {
  const AttentionPass& pass = a.pass;
  const int lanes = pass.lanes, half = static_cast<int>(pass.hd / 2);
  const RowPlace place = place_of({pass.B, pass.T, pass.H_kv, pass.hd}, lanes, thread);
  const int lane = place.lane;
  const MixFactors factors = mix_factors(pass, place);
  if (!place.writes) return;
  HeadRow<kWidth, kSteps> v;
  load_row(v, row_of<T>(a.v, place), lane, lanes, half);
  if (factors.own != 1.f) each_number<kWidth, kSteps>(lane, lanes, half, [&](float& x) { x *= factors.own; }, v);
  if (factors.first != 0.f) {
    HeadRow<kWidth, kSteps> first;
    load_row(first, row_of<T>(pass.first_values, place), lane, lanes, half);
    each_number<kWidth, kSteps>(lane, lanes, half, [&](float& x, float y) { x = fmaf(factors.first, y, x); }, v, first);
  }
  store_row(row_of<T>(a.to_v, place), v, lane, lanes, half);
}

// Rows of q, k, v and the outputs start on kWidth numbers, of tables and weights on 16 bytes if kWidth is not 1; half a
// row is a multiple of kWidth and at most lanes * kWidth * kSteps.
template <typename T, int kWidth, int kSteps>
__global__ void __launch_bounds__(kThreads) qk_norm_rope_mix_kernel(MixInputsArguments a) {
  const AttentionPass& pass = a.pass;
  const auto thread = [](unsigned block) { return static_cast<int64_t>(block) * kThreads + threadIdx.x; };
  if (blockIdx.x < pass.q_blocks) {
    forward_head<T, kWidth, kSteps>(pass, a.q, a.to_q, pass.q_weight, pass.H, thread(blockIdx.x));
  } else if (blockIdx.x < pass.q_blocks + pass.k_blocks) {
    forward_head<T, kWidth, kSteps>(pass, a.k, a.to_k, pass.k_weight, pass.H_kv, thread(blockIdx.x - pass.q_blocks));
  } else {
    forward_value<T, kWidth, kSteps>(a, thread(blockIdx.x - pass.q_blocks - pass.k_blocks));
  }
}

}  // namespace satformer::ops::cuda
