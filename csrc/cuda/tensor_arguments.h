#pragma once
// From tensors to the arguments of the CUDA launchers.
#include <ATen/core/Tensor.h>

#include "csrc/cuda/launch_types.h"

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

// Of a tensor [B, T, heads, ...].
inline Strides strides_of(const at::Tensor& x) { return {x.stride(0), x.stride(1), x.stride(2)}; }

// [B, T, H] numbers; an undefined tensor is absent.
inline GateSource gate_source_of(const at::Tensor& x) {
  if (!x.defined()) return {nullptr, DType::kFloat32, {0, 0, 0}};
  return {x.const_data_ptr(), dtype_of(x), strides_of(x)};
}

template <typename scalar_t>
scalar_t* data_or_null(const at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<scalar_t>() : nullptr;
}
inline void* data_or_null(const at::Tensor& x) { return x.defined() ? x.mutable_data_ptr() : nullptr; }

}  // namespace satformer::ops::cuda
