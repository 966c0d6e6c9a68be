// From what is known at run time to what a kernel is compiled for: the element type of a dtype, numbers as types, and
// whether rows start where wide loads can read them. No torch headers.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

template <typename T>
struct Type {
  using type = T;
};
template <typename Tag>
using TypeOf = typename Tag::type;

// f(Type<T>()) for the element type T of `dtype`; without kWithFloat64 float64 is taken for float32. Use those below.
#pragma nv_exec_check_disable
template <bool kWithFloat64, typename Function>
__host__ __device__ __forceinline__ auto dispatch(DType dtype, const Function& f) {
  switch (dtype) {
    case DType::kBFloat16:
      return f(Type<__nv_bfloat16>());
    case DType::kFloat16:
      return f(Type<__half>());
    case DType::kFloat64:
      if constexpr (kWithFloat64) return f(Type<double>());
      [[fallthrough]];
    default:
      return f(Type<float>());
  }
}

// In kernels: one branch, the same for all threads, in place of a kernel for each mixture of dtypes.
// with_type: float32, bfloat16, float16. with_any_type: float64 too.
template <typename Function>
__device__ __forceinline__ auto with_type(DType dtype, const Function& f) {
  return dispatch<false>(dtype, f);
}
template <typename Function>
__device__ __forceinline__ auto with_any_type(DType dtype, const Function& f) {
  return dispatch<true>(dtype, f);
}

// In launchers: f starts a kernel for T and returns its error. float64 is refused.
template <typename Function>
cudaError_t launch_with_type(DType dtype, const Function& f) {
  return dtype == DType::kFloat64 ? cudaErrorInvalidValue : dispatch<false>(dtype, f);
}

// A number as a type: what a generic lambda can take for a template argument.
template <int kValue>
using Constant = std::integral_constant<int, kValue>;

inline bool starts_on(size_t bytes, const void* data) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; }

// Whether every row of [B, T, H, ...] numbers of `element_size` bytes starts on a multiple of `bytes`; true for an
// absent tensor. The stride of a dimension of one element does not matter.
inline bool rows_start_on(size_t bytes, const void* data, size_t element_size, const Strides& strides,
                          const Sizes& sizes) {
  const auto fits = [&](int64_t size, int64_t stride) {
    return size == 1 || stride * static_cast<int64_t>(element_size) % static_cast<int64_t>(bytes) == 0;
  };
  return !data ||
         (starts_on(bytes, data) && fits(sizes.B, strides.b) && fits(sizes.T, strides.t) && fits(sizes.H, strides.h));
}

}  // namespace satformer::ops::cuda
