// The backward CUDA kernels of qk_norm_rope_mix (formulas: csrc/ops/qk_norm_rope_mix_reference.cpp). As in the forward
// kernel a block works on rows of q, k or v alone; here it goes on to further rows, and a thread keeps the sums of its
// columns in registers. The blocks' sums are added in their order by sums_kernel: the result is the same every time.
#pragma once
#include "csrc/cuda/qk_norm_rope_mix_kernel.cuh"

namespace satformer::ops::cuda {

constexpr int kWarps = kThreads / 32;

// block_sums[j] = sum of column j over the rows of the block, from each thread's own sums. Every thread of the block
// must call it.
template <int kWidth, int kSteps>
__device__ __forceinline__ void sum_columns(float* block_sums, HeadRow<kWidth, kSteps>& sums, int lanes, int hd) {
  __shared__ float warp_sums[kWarps][kLargestCudaHeadDim];
  const int in_warp = static_cast<int>(threadIdx.x) % 32, lane = in_warp % lanes, half = hd / 2;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      for (int offset = lanes; offset < 32; offset *= 2) {
        sums.first[step][j] += __shfl_xor_sync(kFullMask, sums.first[step][j], offset);
        sums.second[step][j] += __shfl_xor_sync(kFullMask, sums.second[step][j], offset);
      }
    }
  }
  if (in_warp < lanes) {
    float* of_warp = warp_sums[threadIdx.x / 32];
    each_step<kWidth, kSteps>(lane, lanes, half, [&](int step, int i) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        of_warp[i + j] = sums.first[step][j];
        of_warp[half + i + j] = sums.second[step][j];
      }
    });
  }
  __syncthreads();
  for (int j = static_cast<int>(threadIdx.x); j < hd; j += kThreads) {
    float sum = 0.f;
    for (int warp = 0; warp < kWarps; ++warp) sum += warp_sums[warp][j];
    block_sums[j] = sum;
  }
}

// Rows of q or k: from the gradient of the output to that of the input. block of blocks: this one among those of q or
// k.
template <typename T, int kWidth, int kSteps>
__device__ __forceinline__ void backward_heads(const AttentionPass& pass, const Source& in, const Source& grad,
                                               const Target& out, const float* weight, float* sums, int64_t heads,
                                               unsigned block, unsigned blocks) {
  using Row = HeadRow<kWidth, kSteps>;
  const int lanes = pass.lanes, half = static_cast<int>(pass.hd / 2);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t threads = pass.B * pass.T * heads * lanes, stride = static_cast<int64_t>(blocks) * kThreads;
  const float size = static_cast<float>(pass.hd);
  Row w{}, of_weight{};
  if (weight) load_row(w, weight, lane, lanes, half);
  // All threads of a block go round equally often.
  for (int64_t start = static_cast<int64_t>(block) * kThreads; start < threads; start += stride) {
    const RowPlace place = place_of({pass.B, pass.T, heads, pass.hd}, lanes, start + threadIdx.x);
    Row g;
    load_row(g, row_of<T>(grad, place), lane, lanes, half);
    rotate_row(g, table_row(pass.cos, place), table_row(pass.sin, place), -1.f, lane, lanes, half);
    if (weight) {
      Row x;
      load_row(x, row_of<T>(in, place), lane, lanes, half);
      float squares = 0.f, products = 0.f;
      each_number<kWidth, kSteps>(
          lane, lanes, half,
          [&](float a, float b, float c) {
            squares = fmaf(a, a, squares);
            products = fmaf(a, b * c, products);
          },
          x, g, w);
      const float r = inverse_rms(squares, pass), mean = lanes_sum(products, lanes) * r / size;
      const float counts = place.writes ? 1.f : 0.f;  // a row past the last one is the last one again
      each_number<kWidth, kSteps>(
          lane, lanes, half,
          [&](float& b, float a, float c, float& sum) {
            const float normalized = a * r;
            sum = fmaf(counts * b, normalized, sum);
            b = r * (b * c - normalized * mean);
          },
          g, x, w, of_weight);
    }
    if (place.writes) store_row(row_of<T>(out, place), g, lane, lanes, half);
  }
  if (weight && sums) sum_columns(sums + block * pass.hd, of_weight, lanes, static_cast<int>(pass.hd));
}

// target = factor * g, or target += factor * g.
template <typename U, int kWidth, int kSteps>
__device__ __forceinline__ void put_first_values(U* target, bool adds, float factor, const HeadRow<kWidth, kSteps>& g,
                                                 int lane, int lanes, int half) {
  if (adds && factor == 0.f) return;
  HeadRow<kWidth, kSteps> result{};
  if (adds) load_row(result, static_cast<const U*>(target), lane, lanes, half);
  if (factor != 0.f) {
    each_number<kWidth, kSteps>(lane, lanes, half, [factor](float& x, float y) { x = fmaf(factor, y, x); }, result, g);
  }
  store_row(target, result, lane, lanes, half);
}

// Sum over a row of g * other, in every thread of the row. Every thread of the warp must call it; only those that read
// touch `other`.
template <typename T, int kWidth, int kSteps>
__device__ __forceinline__ float dot_with(const Source& other, bool reads, const HeadRow<kWidth, kSteps>& g,
                                          const RowPlace& place, int lanes, int half) {
  float sum = 0.f;
  if (reads) {
    HeadRow<kWidth, kSteps> x;
    load_row(x, row_of<T>(other, place), place.lane, lanes, half);
    each_number<kWidth, kSteps>(place.lane, lanes, half, [&](float a, float b) { sum = fmaf(a, b, sum); }, x, g);
  }
  return lanes_sum(sum, lanes);
}

// The gradient of a row's logit; for the softmax gates softmax_backward_kernel goes on from dots.
__device__ __forceinline__ void put_logit(const MixInputsBackwardArguments& a, const GateValue& gate, float dot,
                                          const RowPlace& place) {
  if (is_over_heads(a.pass.gate)) {
    a.dots[place.row] = dot;
  } else {
    const float slope = gate_slope(a.pass.gate, gate);
    store_number(a.to_logits.data, a.pass.logits.dtype, row_start(a.to_logits.strides, place),
                 slope == 0.f ? 0.f : slope * dot);
  }
}

// lambda_sums of the block, from the sums of the threads. Every thread of the block must call it.
__device__ __forceinline__ void sum_lambdas(float* block_sums, float sum1, float sum2) {
  __shared__ float warp_sums[kWarps][2];
  sum1 = lanes_sum(sum1, 32);
  sum2 = lanes_sum(sum2, 32);
  if (threadIdx.x % 32 == 0) {
    warp_sums[threadIdx.x / 32][0] = sum1;
    warp_sums[threadIdx.x / 32][1] = sum2;
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    float sum = 0.f;
    for (int warp = 0; warp < kWarps; ++warp) sum += warp_sums[warp][threadIdx.x];
    block_sums[threadIdx.x] = sum;
  }
}

template <typename T, int kWidth, int kSteps>
__device__ __forceinline__ void backward_values(const MixInputsBackwardArguments& a, unsigned block) {
  const AttentionPass& pass = a.pass;
  const int lanes = pass.lanes, half = static_cast<int>(pass.hd / 2);
  const int64_t threads = pass.B * pass.T * pass.H_kv * lanes, stride = static_cast<int64_t>(pass.v_blocks) * kThreads;
  float lambda1 = 0.f, lambda2 = 0.f;
  for (int64_t start = static_cast<int64_t>(block) * kThreads; start < threads; start += stride) {
    const RowPlace place = place_of({pass.B, pass.T, pass.H_kv, pass.hd}, lanes, start + threadIdx.x);
    const MixFactors factors = mix_factors(pass, place);
    HeadRow<kWidth, kSteps> g;
    load_row(g, row_of<T>(a.grad_v, place), place.lane, lanes, half);
    if (pass.mix == ValueMix::kSelective) {
      const bool closed = pass.gate == Gate::kRelu && factors.gate.logit <= 0.f;
      const float dot = dot_with<T>(pass.first_values, !closed, g, place, lanes, half);
      if (place.writes && place.lane == 0) put_logit(a, factors.gate, dot, place);
    } else if (pass.mix == ValueMix::kStatic) {
      const float dot1 = dot_with<T>(pass.first_values, a.lambda1_grad != nullptr, g, place, lanes, half);
      const float dot2 = dot_with<T>(a.v, a.lambda2_grad != nullptr, g, place, lanes, half);
      if (place.writes && place.lane == 0) lambda1 += dot1, lambda2 += dot2;
    }
    if (!place.writes) continue;
    if (a.to_first_values.data && a.first_values_dtype == pass.dtype) {
      put_first_values(row_of<T>(a.to_first_values, place), a.adds_first_values, factors.first, g, place.lane, lanes,
                       half);
    } else if (a.to_first_values.data) {
      put_first_values(row_of<float>(a.to_first_values, place), a.adds_first_values, factors.first, g, place.lane,
                       lanes, half);
    }
    if (factors.own != 1.f) {
      each_number<kWidth, kSteps>(place.lane, lanes, half, [&](float& x) { x *= factors.own; }, g);
    }
    store_row(row_of<T>(a.to_v, place), g, place.lane, lanes, half);
  }
  if (a.lambda_sums) sum_lambdas(a.lambda_sums + 2 * block, lambda1, lambda2);
}

// What qk_norm_rope_mix_kernel demands of the rows, also of the gradients.
template <typename T, int kWidth, int kSteps>
__global__ void __launch_bounds__(kThreads) qk_norm_rope_mix_backward_kernel(MixInputsBackwardArguments a) {
  const AttentionPass& pass = a.pass;
  if (blockIdx.x < pass.q_blocks) {
    backward_heads<T, kWidth, kSteps>(pass, a.q, a.grad_q, a.to_q, pass.q_weight, a.q_sums, pass.H, blockIdx.x,
                                      pass.q_blocks);
  } else if (blockIdx.x < pass.q_blocks + pass.k_blocks) {
    backward_heads<T, kWidth, kSteps>(pass, a.k, a.grad_k, a.to_k, pass.k_weight, a.k_sums, pass.H_kv,
                                      blockIdx.x - pass.q_blocks, pass.k_blocks);
  } else {
    backward_values<T, kWidth, kSteps>(a, blockIdx.x - pass.q_blocks - pass.k_blocks);
  }
}

// out[j] = sum over the rows of sums[row * stride + j], j < columns. out null: not wanted.
struct ColumnSums {
  const float* sums;
  unsigned rows;
  int64_t stride, columns;
  float* out;
};
constexpr int kColumnSums = 4;
struct AllColumnSums {
  ColumnSums of[kColumnSums];
};

// Block (x, y): 32 columns of of[y]; warp w adds rows w, w + kWarps, ..., then the warps' sums are added in order.
static __global__ void __launch_bounds__(kThreads) sums_kernel(AllColumnSums all) {
  __shared__ float warp_sums[kWarps][32];
  const ColumnSums& a = all.of[blockIdx.y];
  const unsigned in_warp = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + in_warp;
  const bool counts = a.out && column < a.columns;
  float sum = 0.f;
  if (counts) {
    for (unsigned row = warp; row < a.rows; row += kWarps) sum += a.sums[row * a.stride + column];
  }
  warp_sums[warp][in_warp] = sum;
  __syncthreads();
  if (warp != 0 || !counts) return;
  for (int other = 1; other < kWarps; ++other) sum += warp_sums[other][in_warp];
  a.out[column] = sum;
}

}  // namespace satformer::ops::cuda
