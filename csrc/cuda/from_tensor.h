#pragma once
// From tensors to what the launchers take (types.h). The operators' checks come first: nothing is checked here.
#include <ATen/core/Tensor.h>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

inline DType dtype_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kHalf:
      return DType::kFloat16;
    case at::kDouble:
      return DType::kFloat64;
    default:
      return DType::kFloat32;
  }
}

// --- tokens and heads; an undefined tensor is absent
// ------------------------------------------------------------------ Of [B, T, heads, hd].
inline Sizes sizes_of(const at::Tensor& x) { return {x.size(0), x.size(1), x.size(2), x.size(3)}; }

// Of [B, T, heads, hd] or [B, T, heads].
inline Strides strides_of(const at::Tensor& x) { return {x.stride(0), x.stride(1), x.stride(2)}; }

// [B, T, H] numbers.
inline GateSource gate_source_of(const at::Tensor& x) {
  return x.defined() ? GateSource{x.const_data_ptr(), dtype_of(x), strides_of(x)} : GateSource{};
}

// [B, T, heads, hd] values.
inline Source source_of(const at::Tensor& x) {
  return x.defined() ? Source{x.const_data_ptr(), strides_of(x)} : Source{};
}
inline Target target_of(const at::Tensor& x) {
  return x.defined() ? Target{x.mutable_data_ptr(), strides_of(x)} : Target{};
}

// --- matrices [rows, n]; an undefined tensor is absent
// ----------------------------------------------------------------
inline Input input_of(const at::Tensor& rows) {
  return rows.defined() ? matrix<const void*>(rows.const_data_ptr(), dtype_of(rows), rows.stride(0)) : Input{};
}
inline Output output_of(const at::Tensor& rows) {
  return rows.defined() ? matrix<void*>(rows.mutable_data_ptr(), dtype_of(rows), rows.stride(0)) : Output{};
}

// --- the numbers of a dense tensor
// ------------------------------------------------------------------------------------
inline FlatNumbers<const void*> flat_input_of(const at::Tensor& x) { return {x.const_data_ptr(), dtype_of(x)}; }
inline FlatNumbers<void*> flat_output_of(const at::Tensor& x) { return {x.mutable_data_ptr(), dtype_of(x)}; }

// --- pointers; null for an undefined tensor
// ---------------------------------------------------------------------------
inline const float* floats_of(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }
inline float* mutable_floats_of(const at::Tensor& x) { return x.defined() ? x.mutable_data_ptr<float>() : nullptr; }
inline void* mutable_data_of(const at::Tensor& x) { return x.defined() ? x.mutable_data_ptr() : nullptr; }

}  // namespace satformer::ops::cuda
