#pragma once
// Matrices of rows as the launchers take them: [rows, n] numbers of any dtype but float64, contiguous in n. No torch
// headers.
#include <cstdint>

#include "csrc/cuda/dtype.h"

namespace satformer::ops::cuda {

// `pointer`: const void* to read, void* to write; null: absent.
template <typename pointer>
struct Matrix {
  pointer data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t stride = 0;    // elements from row to row
  bool on_grid = false;  // every row starts on 16 bytes
};
using Input = Matrix<const void*>;
using Output = Matrix<void*>;

inline int64_t bytes_of(DType dtype) { return dtype == DType::kFloat32 ? 4 : dtype == DType::kFloat64 ? 8 : 2; }

template <typename pointer>
Matrix<pointer> matrix(pointer data, DType dtype, int64_t stride) {
  const bool on_grid = reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride * bytes_of(dtype) % 16 == 0;
  return {data, dtype, stride, on_grid};
}

}  // namespace satformer::ops::cuda
