#pragma once
// What the tensor sides of the CUDA operators hand to their launchers and kernels: pointers, dtypes, sizes, strides. No
// torch headers, so that nvcc compiles a kernel in seconds. Strides count elements. from_tensor.h makes these of
// tensors.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "csrc/ops/gate.h"

namespace satformer::ops::cuda {

enum class DType { kFloat32, kBFloat16, kFloat16, kFloat64 };

constexpr int64_t bytes_of(DType dtype) { return dtype == DType::kFloat32 ? 4 : dtype == DType::kFloat64 ? 8 : 2; }

// --- tokens and heads ------------------------------------------------------------------------------------------------
struct Sizes {
  int64_t B, T, H, hd;
};
struct Strides {
  int64_t b, t, h;
};

// [B, T, H] numbers of any dtype; data null: absent.
struct GateSource {
  const void* data;
  DType dtype;
  Strides strides;
};

// [B, T, heads, hd] values, or with h-stride 0 rows [B, T, hd]; contiguous in hd; data null: absent.
struct Source {
  const void* data;
  Strides strides;
};
struct Target {
  void* data;
  Strides strides;
};

// Whether the gate's derivative mixes the heads of a token.
__host__ __device__ inline bool is_over_heads(Gate gate) {
  return gate == Gate::kSoftmax || gate == Gate::kSoftmaxSigmoid;
}

// --- matrices --------------------------------------------------------------------------------------------------------
// [rows, n] numbers of any dtype but float64, contiguous in n. `pointer`: const void* to read, void* to write; null:
// absent.
template <typename pointer>
struct Matrix {
  pointer data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t stride = 0;    // elements from row to row
  bool on_grid = false;  // every row starts on 16 bytes
};
using Input = Matrix<const void*>;
using Output = Matrix<void*>;

template <typename pointer>
Matrix<pointer> matrix(pointer data, DType dtype, int64_t stride) {
  const bool on_grid = reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride * bytes_of(dtype) % 16 == 0;
  return {data, dtype, stride, on_grid};
}

// --- lists of dense tensors ------------------------------------------------------------------------------------------
// The numbers of one tensor, of any dtype. `pointer`: const void* to read, void* to write.
template <typename pointer>
struct FlatNumbers {
  pointer data;
  DType dtype;
};

// Bytes that a kernel's arguments may take on every GPU. A launch gets a table of as many tensors as fit, by value.
constexpr std::size_t kArgumentBytes = 4096;

// Blocks for n numbers of a tensor: a block never crosses from one tensor to the next.
constexpr int64_t flat_blocks(int64_t n, int64_t numbers_a_block) {
  return (n + numbers_a_block - 1) / numbers_a_block;
}

}  // namespace satformer::ops::cuda
