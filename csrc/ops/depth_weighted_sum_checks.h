#pragma once
// Checks of the depth-weighted sum's arguments, shared by every dispatch key, and the form the kernels take them in.
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "csrc/ops/depth_weighted_sum.h"

namespace satformer::ops {

using Tensors = std::vector<at::Tensor>;

// What follows from checked arguments.
inline std::size_t ways(const DepthSum& sum) { return static_cast<std::size_t>(sum.weights.size(-2)); }
inline bool has_weights_per_token(const DepthSum& sum) { return sum.weights.dim() == 4; }
inline at::ScalarType values_dtype(const DepthSum& sum) { return sum.sources[0].scalar_type(); }

void check_depth_weighted_sum(const char* op, const DepthSum& sum);
void check_depth_weighted_sum_backward(const char* op, at::TensorList grads, const DepthSum& sum);
// What is added to: like the sources, and sharing memory neither with them, nor with grads, nor with one another.
void check_grad_sources(const char* op, at::TensorList grad_sources, at::TensorList grads, const DepthSum& sum);
void check_inverse_rms(const at::Tensor& x, double eps);
void check_inverse_rms_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse);

// Parameters in the arithmetic dtype, contiguous.
struct DepthSumParameters {
  explicit DepthSumParameters(const DepthSum& sum);
  at::Tensor weights;
  Tensors norm_weights, inverse_rms, output_norm_weights;
};

// One for each way: [B, T, d], contiguous.
Tensors outputs_of_depth_weighted_sum(const DepthSum& sum);

// `mask` without what the sum does not have.
DepthSumMask wanted_gradients(const DepthSumMask& mask, const DepthSum& sum);

// What a backward kernel writes: contiguous, undefined where no gradient is wanted. All but sources (where the caller
// brings none) and base are in the arithmetic dtype.
struct DepthSumBackwardOutputs {
  DepthSumBackwardOutputs(const DepthSum& sum, const DepthSumMask& wanted, bool with_sources);
  Tensors sources;                 // [B, T, d] each
  at::Tensor weights, base;        // the shapes of the arguments
  at::Tensor norm_weights;         // [S, d]
  at::Tensor inverse_rms;          // [S, B, T]
  at::Tensor output_norm_weights;  // [C, d]

  // In the arguments' dtypes.
  DepthSumGradients gradients(const DepthSum& sum) const;
};

}  // namespace satformer::ops
