// The gates of the value mix in the CUDA kernels, and where a thread works: what gated_value_mix and qk_norm_rope_mix
// share. No torch headers.
//
// A row is one head of one token. `lanes` threads (a power of two, at most 32) share a row, so that a warp is busy also
// when hd is small. All threads of a warp reach every shuffle: those past the last row work on the last one and write
// nothing.
#pragma once
#include <cstdint>

#include "csrc/cuda/device_common.cuh"
#include "csrc/cuda/vector_io.cuh"

namespace satformer::ops::cuda {

constexpr int kThreads = 256;

// Threads for a row of hd values, each moving `width` of them at a time.
inline int lanes_for(int64_t hd, int64_t width) {
  int lanes = 1;
  while (lanes < 32 && lanes * width < hd) lanes *= 2;
  return lanes;
}

inline unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

// Where a thread works.
struct RowPlace {
  int64_t row;  // (b * T + t) * H + h
  int64_t b, t, h;
  int lane;     // within the row
  bool writes;  // false past the last row
};

// `thread` counts from the first thread of the first row.
__device__ __forceinline__ RowPlace place_of(const Sizes& sizes, int lanes, int64_t thread) {
  const int64_t rows = sizes.B * sizes.T * sizes.H;
  RowPlace place;
  place.row = thread / lanes;
  place.writes = place.row < rows;
  if (!place.writes) place.row = rows - 1;
  const int64_t token = place.row / sizes.H;
  place.h = place.row - token * sizes.H;
  place.b = token / sizes.T;
  place.t = token - place.b * sizes.T;
  place.lane = static_cast<int>(thread % lanes);
  return place;
}

__device__ __forceinline__ RowPlace place_of_thread(const Sizes& sizes, int lanes) {
  return place_of(sizes, lanes, static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
}

// The number at [b, t, h] of logits, scale or shift.
__device__ __forceinline__ float load_gate(const GateSource& source, int64_t b, int64_t t, int64_t h) {
  return load_number(source.data, source.dtype, b * source.strides.b + t * source.strides.t + h * source.strides.h);
}

struct GateValue {
  float logit, alpha;
};

// exp(x - largest) / sum over a token's heads.
struct Softmax {
  float largest, sum;
  __device__ __forceinline__ float at(float x) const { return expf(x - largest) / sum; }
};

// The softmax of the token at place; `lanes` threads share its heads. Every thread of the warp must call it.
__device__ __forceinline__ Softmax softmax_of_token(const GateSource& logits, const Sizes& sizes, const RowPlace& place,
                                                    int lanes) {
  Softmax softmax{-INFINITY, 0.f};
  for (int64_t h = place.lane; h < sizes.H; h += lanes) {
    const float x = load_gate(logits, place.b, place.t, h);
    softmax.largest = x > softmax.largest || x != x ? x : softmax.largest;
  }
  softmax.largest = lanes_max(softmax.largest, lanes);
  for (int64_t h = place.lane; h < sizes.H; h += lanes) {
    softmax.sum += expf(load_gate(logits, place.b, place.t, h) - softmax.largest);
  }
  softmax.sum = lanes_sum(softmax.sum, lanes);
  return softmax;
}

__device__ __forceinline__ GateValue gate_of_row(Gate gate, const GateSource& logits, const Sizes& sizes,
                                                 const RowPlace& place, int lanes) {
  GateValue value{load_gate(logits, place.b, place.t, place.h), 0.f};
  const float x = value.logit;
  float softmax = 0.f;  // times H
  if (is_over_heads(gate)) {
    softmax = softmax_of_token(logits, sizes, place, lanes).at(x) * static_cast<float>(sizes.H);
  }
  switch (gate) {
    case Gate::kRelu:
      value.alpha = x <= 0.f ? 0.f : x;  // NaN stays NaN
      break;
    case Gate::kSigmoid:
      value.alpha = sigmoid(x);
      break;
    case Gate::kSoftmax:
      value.alpha = softmax;
      break;
    case Gate::kSoftmaxSigmoid:
      value.alpha = softmax * sigmoid(x);
      break;
    case Gate::kTanh:
      value.alpha = tanhf(x);
      break;
    case Gate::kIdentity:
      value.alpha = x;
      break;
  }
  return value;
}

// The gate's derivative; not for the softmax gates.
__device__ __forceinline__ float gate_slope(Gate gate, const GateValue& value) {
  switch (gate) {
    case Gate::kRelu:
      return value.logit <= 0.f ? 0.f : 1.f;
    case Gate::kSigmoid:
      return value.alpha * (1.f - value.alpha);
    case Gate::kTanh:
      return 1.f - value.alpha * value.alpha;
    default:
      return 1.f;
  }
}

__device__ __forceinline__ int64_t row_start(const Strides& strides, const RowPlace& place) {
  return place.b * strides.b + place.t * strides.t + place.h * strides.h;
}

// From dots = d alpha [B, T, H], contiguous, to grad_logits of the logits' dtype.
struct SoftmaxBackward {
  Sizes sizes;
  Gate gate;
  GateSource logits;
  const float* dots;
  void* grad_logits;
  Strides grad_strides;
};

// grad_logits of the softmax gates from d alpha: one warp a token, its lanes share the heads.
//   softmax:          alpha_j (g_j - sum_h p_h g_h)
//   softmax_sigmoid:  alpha_j g_j (2 - sigmoid_j) - p_j sum_h alpha_h g_h
static __global__ void __launch_bounds__(kThreads) softmax_backward_kernel(SoftmaxBackward a) {
  constexpr int kLanes = 32;
  const Sizes& sizes = a.sizes;
  const RowPlace place = place_of_thread({sizes.B, sizes.T, 1, 0}, kLanes);
  const float heads = static_cast<float>(sizes.H);
  const bool with_sigmoid = a.gate == Gate::kSoftmaxSigmoid;
  const Softmax softmax = softmax_of_token(a.logits, sizes, place, kLanes);
  float sum = 0.f;  // of p_h g_h, or of alpha_h g_h
  for (int64_t h = place.lane; h < sizes.H; h += kLanes) {
    const float x = load_gate(a.logits, place.b, place.t, h);
    const float weight = softmax.at(x) * (with_sigmoid ? heads * sigmoid(x) : 1.f);
    sum = fmaf(weight, a.dots[place.row * sizes.H + h], sum);
  }
  sum = lanes_sum(sum, kLanes);
  if (!place.writes) return;
  for (int64_t h = place.lane; h < sizes.H; h += kLanes) {
    const int64_t i = place.row * sizes.H + h;
    const float x = load_gate(a.logits, place.b, place.t, h), p = softmax.at(x), g = a.dots[i];
    const float s = sigmoid(x);
    const float result = with_sigmoid ? p * heads * s * g * (2.f - s) - p * sum : p * heads * (g - sum);
    store_number(a.grad_logits, a.logits.dtype,
                 place.b * a.grad_strides.b + place.t * a.grad_strides.t + h * a.grad_strides.h, result);
  }
}

}  // namespace satformer::ops::cuda
