#pragma once
// The dtypes in which a tensor takes part in a model, by its own dtype and autocast.
#include <ATen/core/Tensor.h>

namespace satformer {

// What matrix products of x run in: autocast's dtype where autocast is on for x's device, else x's own.
at::ScalarType compute_dtype(const at::Tensor& x);

// What norms, rotations and losses of x are computed in: float64 for float64, float32 for everything else.
inline at::ScalarType accumulate_dtype(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace satformer
