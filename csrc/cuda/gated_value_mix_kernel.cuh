// CUDA kernels of gated_value_mix (formulas: csrc/ops/gated_value_mix.h). Plain CUDA C++ without torch headers, so that
// nvcc compiles it in seconds and a host harness can run it.
//
// A row is one KV head of one token: hd values and one gate. `lanes` threads (a power of two, at most 32) share a
// row, so that a warp is busy also when hd is small: with bfloat16 and hd 64, 8 lanes of 16 bytes read a row and a
// warp reads four. All threads of a warp reach every shuffle: those past the last row work on the last one and write
// nothing. Where the gate is closed, first values are not loaded.
#pragma once
#include <cstdint>

#include "csrc/cuda/device_common.cuh"
#include "csrc/cuda/gated_value_mix_launch.h"

namespace satformer::ops::cuda {

constexpr int kThreads = 256;

// Where a thread works.
struct Place {
  int64_t row;  // (b * T + t) * H + h
  int64_t b, t, h;
  int lane;     // within the row
  bool writes;  // false past the last row
};

__device__ __forceinline__ Place place_of_thread(const Sizes& sizes, int lanes) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t rows = sizes.B * sizes.T * sizes.H;
  Place place;
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

// The number at [b, t, h] of logits, scale or shift.
__device__ __forceinline__ float load_gate(const GateSource& source, int64_t b, int64_t t, int64_t h) {
  const int64_t i = b * source.strides.b + t * source.strides.t + h * source.strides.h;
  switch (source.dtype) {
    case DType::kBFloat16:
      return to_float(static_cast<const __nv_bfloat16*>(source.data)[i]);
    case DType::kFloat16:
      return to_float(static_cast<const __half*>(source.data)[i]);
    case DType::kFloat64:
      return to_float(static_cast<const double*>(source.data)[i]);
    default:
      return static_cast<const float*>(source.data)[i];
  }
}

__device__ __forceinline__ void store_gate(void* data, DType dtype, int64_t i, float value) {
  switch (dtype) {
    case DType::kBFloat16:
      static_cast<__nv_bfloat16*>(data)[i] = from_float<__nv_bfloat16>(value);
      return;
    case DType::kFloat16:
      static_cast<__half*>(data)[i] = from_float<__half>(value);
      return;
    default:
      static_cast<float*>(data)[i] = value;
  }
}

__device__ __forceinline__ float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

__device__ __forceinline__ bool over_heads(Gate gate) {  // the device's is_over_heads()
  return gate == Gate::kSoftmax || gate == Gate::kSoftmaxSigmoid;
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
__device__ __forceinline__ Softmax softmax_of_token(const GateSource& logits, const Sizes& sizes, const Place& place,
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

__device__ __forceinline__ GateValue gate_of_row(const Gates& gates, const Sizes& sizes, const Place& place,
                                                 int lanes) {
  GateValue value{load_gate(gates.logits, place.b, place.t, place.h), 0.f};
  const float x = value.logit;
  float softmax = 0.f;  // times H
  if (over_heads(gates.gate)) {
    softmax = softmax_of_token(gates.logits, sizes, place, lanes).at(x) * static_cast<float>(sizes.H);
  }
  switch (gates.gate) {
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

__device__ __forceinline__ float scale_of_row(const Gates& gates, const Place& place) {
  return gates.scale.data ? load_gate(gates.scale, place.b, place.t, place.h) : 1.f;
}
__device__ __forceinline__ float shift_of_row(const Gates& gates, const Place& place) {
  return gates.shift.data ? load_gate(gates.shift, place.b, place.t, place.h) : 0.f;
}

__device__ __forceinline__ int64_t row_start(const Strides& strides, const Place& place) {
  return place.b * strides.b + place.t * strides.t + place.h * strides.h;
}

// kPacked: every row of out, v and first starts on 16 bytes. out may be v.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kThreads) mix_kernel(MixArguments a) {
  const Place place = place_of_thread(a.sizes, a.lanes);
  const float alpha =
      scale_of_row(a.gates, place) * gate_of_row(a.gates, a.sizes, place, a.lanes).alpha + shift_of_row(a.gates, place);
  if (!place.writes) return;
  T* out = static_cast<T*>(a.out) + row_start(a.out_strides, place);
  const T* v = static_cast<const T*>(a.v) + row_start(a.v_strides, place);
  const T* first = static_cast<const T*>(a.first_values) + row_start(a.first_strides, place);
  const bool open = alpha != 0.f;
  int64_t packed = 0;
  if constexpr (kPacked) {
    constexpr int kSize = Pack<T>::kSize;
    packed = a.sizes.hd / kSize * kSize;
#pragma unroll 1  // a row is rarely longer than its lanes' first pass
    for (int64_t i = static_cast<int64_t>(place.lane) * kSize; i < packed; i += static_cast<int64_t>(a.lanes) * kSize) {
      Pack<T> x = load_pack(v + i);
      if (open) {
        const Pack<T> y = load_pack(first + i);
#pragma unroll
        for (int k = 0; k < kSize; ++k) {
          x.values[k] = from_float<T>(fmaf(alpha, to_float(y.values[k]), to_float(x.values[k])));
        }
      }
      store_pack(out + i, x);
    }
  }
  for (int64_t i = packed + place.lane; i < a.sizes.hd; i += a.lanes) {
    out[i] = open ? from_float<T>(fmaf(alpha, to_float(first[i]), to_float(v[i]))) : v[i];
  }
}

// Whether anything multiplies the row's d alpha'.
__device__ __forceinline__ bool needs_dot(const MixBackwardArguments& a, const GateValue& value, float scale) {
  const bool relu_closed = a.gates.gate == Gate::kRelu && value.logit <= 0.f;
  const bool reaches_logits = a.grad_logits && !relu_closed && scale != 0.f;
  return reaches_logits || a.shift_terms || (a.scale_terms && value.alpha != 0.f);
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

// grad_first_values, d alpha' and what follows from it within the row. For the softmax gates d alpha goes to `dots`,
// and softmax_backward_kernel finishes. kPacked: every row of grad, first and the output starts on 16 bytes.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kThreads) mix_backward_kernel(MixBackwardArguments a) {
  const Place place = place_of_thread(a.sizes, a.lanes);
  const GateValue value = gate_of_row(a.gates, a.sizes, place, a.lanes);
  const float scale = scale_of_row(a.gates, place);
  const float alpha = scale * value.alpha + shift_of_row(a.gates, place);
  const T* grad = static_cast<const T*>(a.grad) + row_start(a.grad_strides, place);
  const T* first = static_cast<const T*>(a.first_values) + row_start(a.first_strides, place);
  T* out = nullptr;
  if (a.grad_first_values && place.writes) out = static_cast<T*>(a.grad_first_values) + place.row * a.sizes.hd;
  const bool dot = needs_dot(a, value, scale), open = alpha != 0.f;
  const bool reads_grad = dot || (open && out);
  float sum = 0.f;
  int64_t packed = 0;
  if constexpr (kPacked) {
    constexpr int kSize = Pack<T>::kSize;
    packed = a.sizes.hd / kSize * kSize;
#pragma unroll 1  // a row is rarely longer than its lanes' first pass
    for (int64_t i = static_cast<int64_t>(place.lane) * kSize; i < packed; i += static_cast<int64_t>(a.lanes) * kSize) {
      Pack<T> g{}, result{};
      if (reads_grad) g = load_pack(grad + i);
      if (dot) {
        const Pack<T> y = load_pack(first + i);
#pragma unroll
        for (int k = 0; k < kSize; ++k) sum = fmaf(to_float(g.values[k]), to_float(y.values[k]), sum);
      }
      if (!out) continue;
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
        result.values[k] = from_float<T>(open ? alpha * to_float(g.values[k]) : 0.f);
      }
      store_pack(out + i, result);
    }
  }
  for (int64_t i = packed + place.lane; i < a.sizes.hd; i += a.lanes) {
    const float g = reads_grad ? to_float(grad[i]) : 0.f;
    if (dot) sum = fmaf(g, to_float(first[i]), sum);
    if (out) out[i] = from_float<T>(open ? alpha * g : 0.f);
  }
  sum = lanes_sum(sum, a.lanes);
  if (place.lane != 0 || !place.writes) return;
  if (a.shift_terms) a.shift_terms[place.row] = sum;
  if (a.scale_terms) a.scale_terms[place.row] = value.alpha * sum;
  if (!a.grad_logits) return;
  if (over_heads(a.gates.gate)) {
    a.dots[place.row] = scale * sum;
  } else {
    const float slope = gate_slope(a.gates.gate, value);
    store_gate(a.grad_logits, a.gates.logits.dtype, place.row, slope == 0.f ? 0.f : slope * scale * sum);
  }
}

// grad_logits of the softmax gates from dots = d alpha: one warp a token, its lanes share the heads.
//   softmax:          alpha_j (g_j - sum_h p_h g_h)
//   softmax_sigmoid:  alpha_j g_j (2 - sigmoid_j) - p_j sum_h alpha_h g_h
static __global__ void __launch_bounds__(kThreads) softmax_backward_kernel(MixBackwardArguments a) {
  constexpr int kLanes = 32;
  const Sizes& sizes = a.sizes;
  const Place place = place_of_thread({sizes.B, sizes.T, 1, 0}, kLanes);
  const float heads = static_cast<float>(sizes.H);
  const bool with_sigmoid = a.gates.gate == Gate::kSoftmaxSigmoid;
  const Softmax softmax = softmax_of_token(a.gates.logits, sizes, place, kLanes);
  float sum = 0.f;  // of p_h g_h, or of alpha_h g_h
  for (int64_t h = place.lane; h < sizes.H; h += kLanes) {
    const float x = load_gate(a.gates.logits, place.b, place.t, h);
    const float weight = softmax.at(x) * (with_sigmoid ? heads * sigmoid(x) : 1.f);
    sum = fmaf(weight, a.dots[place.row * sizes.H + h], sum);
  }
  sum = lanes_sum(sum, kLanes);
  if (!place.writes) return;
  for (int64_t h = place.lane; h < sizes.H; h += kLanes) {
    const int64_t i = place.row * sizes.H + h;
    const float x = load_gate(a.gates.logits, place.b, place.t, h), p = softmax.at(x), g = a.dots[i];
    const float s = sigmoid(x);
    const float result = with_sigmoid ? p * heads * s * g * (2.f - s) - p * sum : p * heads * (g - sum);
    store_gate(a.grad_logits, a.gates.logits.dtype, i, result);
  }
}

}  // namespace satformer::ops::cuda
