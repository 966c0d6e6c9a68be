#pragma once
// Checks of the hyper-connections' arguments, shared by every dispatch key, and the form the kernels take them in.
#include <ATen/core/Tensor.h>

#include <tuple>

#include "csrc/ops/hyper_connection.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {

// The parameters with the streams that they are applied to.
struct HyperConnectionArguments : HyperConnection {
  at::Tensor streams;

  static constexpr auto fields() {
    return std::tuple_cat(std::tuple{&HyperConnectionArguments::streams}, HyperConnection::fields());
  }

  bool dynamic() const { return given(norm_weight); }
  bool layer_norm() const { return given(norm_bias); }
  at::ScalarType arithmetic() const { return accumulate_dtype(streams); }
};

// What reaches the backward of the read.
struct HyperConnectionReadGradients {
  at::Tensor input, mixed, beta;

  static constexpr auto fields() {
    using Grad = HyperConnectionReadGradients;
    return std::tuple{&Grad::input, &Grad::mixed, &Grad::beta};
  }
};

void check_hyper_connection_read(const char* op, const HyperConnectionArguments& arguments);
void check_hyper_connection_read_backward(const char* op, const HyperConnectionReadGradients& grads,
                                          const HyperConnectionArguments& arguments, const at::Tensor& kept);
void check_hyper_connection_write(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out,
                                  bool in_place);
void check_hyper_connection_write_backward(const at::Tensor& grad, const at::Tensor& beta, const at::Tensor& out);

// input, mixed, beta and kept, not yet filled.
HyperConnectionRead outputs_of_hyper_connection_read(const HyperConnectionArguments& arguments);

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
HyperConnectionGradients hyper_connection_gradients(const at::Tensor& grad_streams, const at::Tensor& sums,
                                                    const HyperConnectionArguments& arguments);

}  // namespace satformer::ops
