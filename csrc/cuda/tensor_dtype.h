#pragma once
// From at::Tensor to what the launchers take.
#include <ATen/core/Tensor.h>

#include "csrc/cuda/dtype.h"

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

}  // namespace satformer::ops::cuda
