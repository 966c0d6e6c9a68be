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
#include "csrc/cuda/gate.cuh"
#include "csrc/cuda/gated_value_mix_launch.h"

namespace satformer::ops::cuda {

__device__ __forceinline__ float scale_of_row(const Gates& gates, const RowPlace& place) {
  return gates.scale.data ? load_gate(gates.scale, place.b, place.t, place.h) : 1.f;
}
__device__ __forceinline__ float shift_of_row(const Gates& gates, const RowPlace& place) {
  return gates.shift.data ? load_gate(gates.shift, place.b, place.t, place.h) : 0.f;
}

// kPacked: every row of out, v and first starts on 16 bytes. out may be v.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kThreads) mix_kernel(MixArguments a) {
  const RowPlace place = place_of_thread(a.sizes, a.lanes);
  const float alpha =
      scale_of_row(a.gates, place) * gate_of_row(a.gates.gate, a.gates.logits, a.sizes, place, a.lanes).alpha +
      shift_of_row(a.gates, place);
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

// grad_first_values, d alpha' and what follows from it within the row. For the softmax gates d alpha goes to `dots`,
// and softmax_backward_kernel finishes. kPacked: every row of grad, first and the output starts on 16 bytes.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kThreads) mix_backward_kernel(MixBackwardArguments a) {
  const RowPlace place = place_of_thread(a.sizes, a.lanes);
  const GateValue value = gate_of_row(a.gates.gate, a.gates.logits, a.sizes, place, a.lanes);
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
  if (is_over_heads(a.gates.gate)) {
    a.dots[place.row] = scale * sum;
  } else {
    const float slope = gate_slope(a.gates.gate, value);
    store_number(a.grad_logits, a.gates.logits.dtype, place.row, slope == 0.f ? 0.f : slope * scale * sum);
  }
}

}  // namespace satformer::ops::cuda
