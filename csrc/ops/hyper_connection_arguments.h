#pragma once
// Checks of the hyper-connections' arguments, shared by every dispatch key, and the form the kernels take them in.
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include "csrc/ops/hyper_connection_calls.h"

namespace satformer::ops {

// HyperConnection as the dispatcher passes it.
struct HyperConnectionArguments {
  const at::Tensor &streams, &static_alpha, &static_beta;
  const OptionalTensor &norm_weight, &norm_bias, &dynamic_alpha_proj, &dynamic_beta_proj, &dynamic_alpha_scale,
      &dynamic_beta_scale;
  double norm_eps;
  bool use_tanh;

  bool dynamic() const { return norm_weight.has_value() && norm_weight->defined(); }
  bool layer_norm() const { return norm_bias.has_value() && norm_bias->defined(); }
  at::ScalarType arithmetic() const { return at::toOpMathType(streams.scalar_type()); }
};

void check_read(const char* op, const HyperConnectionArguments& arguments);
void check_read_backward(const char* op, const at::Tensor& grad_input, const at::Tensor& grad_mixed,
                         const at::Tensor& grad_beta, const HyperConnectionArguments& arguments,
                         const at::Tensor& kept);
void check_write(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out, bool in_place);
void check_write_backward(const at::Tensor& grad, const at::Tensor& beta, const at::Tensor& out);

// input, mixed, beta and kept, not yet filled.
ReadTuple empty_read(const HyperConnectionArguments& arguments);

// Parameters in the arithmetic dtype, contiguous. Without the dynamic part all but the first two are undefined.
struct HyperConnectionParameters {
  explicit HyperConnectionParameters(const HyperConnectionArguments& arguments);
  at::Tensor static_alpha, static_beta;  // [n, n+1], [n]
  at::Tensor projections;                // [n+2, d]: the columns of alpha_proj and beta_proj times norm_weight
  at::Tensor offsets, means;             // [n+2]: their products with norm_bias; means of the rows of projections
  at::Tensor alpha_scale, beta_scale;    // [1]
};

// Sums over all tokens from which the parameters' gradients follow, as the backward kernels write them, one after the
// other; g_im is the gradient of f's argument z_im, x_i the normalised row before weight and bias:
//   dynamic:  [n+2, d] sum_i g_im x_i;  [n+2] sum_i g_im;  [2] the gradients of the scales
//   always:   [n, n+1] and [n] the gradients of A and beta
constexpr std::int64_t hyper_connection_sums(std::int64_t n, std::int64_t d, bool dynamic) {
  return (dynamic ? (n + 2) * d + (n + 2) + 2 : 0) + n * (n + 1) + n;
}
ReadGradientTuple gradients_of_sums(const at::Tensor& grad_streams, const at::Tensor& sums,
                                    const HyperConnectionArguments& arguments);

}  // namespace satformer::ops
