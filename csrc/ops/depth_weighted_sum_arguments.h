#pragma once
// Checks of the depth-weighted sum's arguments, shared by every dispatch key, and the form the kernels take them in.
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "csrc/ops/depth_weighted_sum_calls.h"

namespace satformer::ops {

// DepthSum as the dispatcher passes it.
struct DepthSumArguments {
  at::TensorList sources;
  const at::Tensor& weights;
  const std::optional<at::Tensor>& base;
  at::TensorList source_norm_weights, source_inverse_rms, output_norm_weights;
  double output_norm_eps = 0.0;

  std::size_t ways() const { return static_cast<std::size_t>(weights.size(-2)); }
  bool per_token() const { return weights.dim() == 4; }
  at::ScalarType dtype() const { return sources[0].scalar_type(); }
};

void check_depth_sum(const char* op, const DepthSumArguments& arguments);
void check_depth_sum_backward(const char* op, at::TensorList grads, const DepthSumArguments& arguments);
// What is added to: like the sources, and sharing memory neither with them, nor with grads, nor with one another.
void check_grad_sources(const char* op, at::TensorList grad_sources, at::TensorList grads,
                        const DepthSumArguments& arguments);
void check_inverse_rms(const at::Tensor& x, double eps);
void check_inverse_rms_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse);

// Parameters in the arithmetic dtype, contiguous.
struct DepthSumParameters {
  explicit DepthSumParameters(const DepthSumArguments& arguments);
  at::Tensor weights;
  Tensors norm_weights, inverse_rms, output_norm_weights;
};

// `mask` without what the sum does not have.
DepthSumMask wanted_gradients(const DepthSumMask& mask, const DepthSumArguments& arguments);

// What a backward kernel writes: contiguous, undefined where no gradient is wanted. All but sources (where the caller
// brings none) and base are in the arithmetic dtype.
struct DepthSumOutputs {
  DepthSumOutputs(const DepthSumArguments& arguments, const DepthSumMask& wanted, bool with_sources);
  Tensors sources;                 // [B, T, d] each
  at::Tensor weights, base;        // the shapes of the arguments
  at::Tensor norm_weights;         // [S, d]
  at::Tensor inverse_rms;          // [S, B, T]
  at::Tensor output_norm_weights;  // [C, d]

  // In the arguments' dtypes.
  DepthGradientTuple gradients(const DepthSumArguments& arguments) const;
};

}  // namespace satformer::ops
