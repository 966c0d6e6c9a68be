#pragma once
// From [rows, n] tensors to the launchers' matrices.
#include <ATen/core/Tensor.h>

#include "csrc/cuda/rows.h"
#include "csrc/cuda/tensor_dtype.h"

namespace satformer::ops::cuda {

// An undefined tensor is an absent matrix.
inline Input input_of(const at::Tensor& rows) {
  return rows.defined() ? matrix<const void*>(rows.const_data_ptr(), dtype_of(rows), rows.stride(0)) : Input{};
}
inline Output output_of(const at::Tensor& rows) {
  return rows.defined() ? matrix<void*>(rows.mutable_data_ptr(), dtype_of(rows), rows.stride(0)) : Output{};
}

}  // namespace satformer::ops::cuda
