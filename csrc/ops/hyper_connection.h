#pragma once
// Hyper-connections (Zhu et al. 2024, equations 1 to 5 and 12 to 14): n streams Hs carry the residual; a module reads
// its input from them and writes its output back.
//
//   read:   N     = norm(Hs)                                              [B, T, n, d]
//           A     = static_alpha + dynamic_alpha_scale * f(N dynamic_alpha_proj)     [B, T, n, n+1]
//           beta  = static_beta + dynamic_beta_scale * f(N dynamic_beta_proj)        [B, T, n]
//           M     = A^T Hs                                                [B, T, n+1, d];  input = M_0, mixed = M_1..n
//   write:  Hs'   = mixed + beta (x) out                                  [B, T, n, d]
//
// f is tanh or the identity; norm is RMSNorm, or LayerNorm where norm_bias is given. Without the dynamic part (static
// hyper-connections) A and beta are the static parameters.
//
//   streams  [B, T, n, d], n from 1 to 8, d at least 1 (on CUDA the dynamic part's backward takes (n + 2) d up to
//            51200); float32, bfloat16 or float16 (float64 on CPU). The last dimension is contiguous, the other strides
//            are free: the first streams may be an expanded embedding.
//
// Arithmetic is in float32 (float64 for float64), one rounding of each result. Both are differentiable once, in every
// tensor. A wrong argument is a c10::Error that names operator, argument and what it got.
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace satformer::ops {

inline constexpr std::int64_t kMaxStreams = 8;

// Parameters of any floating dtype.
struct HyperConnection {
  at::Tensor static_alpha;                       // [n, n+1]
  at::Tensor static_beta;                        // [n]
  std::optional<at::Tensor> norm_weight;         // [d]: the dynamic part is there; then so are all but norm_bias
  std::optional<at::Tensor> norm_bias;           // [d]: LayerNorm; absent: RMSNorm
  std::optional<at::Tensor> dynamic_alpha_proj;  // [d, n+1]
  std::optional<at::Tensor> dynamic_beta_proj;   // [d]
  std::optional<at::Tensor> dynamic_alpha_scale, dynamic_beta_scale;  // [1]
  double norm_eps = 1.1920929e-07;                                    // the paper's code; 1e-5 with LayerNorm
  bool use_tanh = true;

  static constexpr auto fields() {  // in the order of the schema (csrc/ops/tensor_fields.h)
    using In = HyperConnection;
    return std::tuple{
        &In::static_alpha,       &In::static_beta,       &In::norm_weight,         &In::norm_bias,
        &In::dynamic_alpha_proj, &In::dynamic_beta_proj, &In::dynamic_alpha_scale, &In::dynamic_beta_scale,
        &In::norm_eps,           &In::use_tanh};
  }
};

struct HyperConnectionRead {
  at::Tensor input;  // M_0 [B, T, d], contiguous, the streams' dtype
  at::Tensor mixed;  // M_1..n [B, T, n, d], likewise
  at::Tensor beta;   // [B, T, n], float32 (float64 for float64)
  // For the backward, without a gradient: f's argument, [.., :n+1] of alpha and [.., n+1] of beta, the inverse norm and
  // the mean (0 with RMSNorm) of each stream. [B, T, n, n+4], float32 (float64); [0] without the dynamic part.
  at::Tensor kept;

  static constexpr auto fields() {
    using Out = HyperConnectionRead;
    return std::tuple{&Out::input, &Out::mixed, &Out::beta, &Out::kept};
  }
};
HyperConnectionRead hyper_connection_read(const at::Tensor& streams, const HyperConnection& parameters);

// Hs', contiguous.  mixed [B, T, n, d]; beta [B, T, n], any floating dtype; out [B, T, d], any floating dtype.
at::Tensor hyper_connection_write(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out);
// Writes Hs' over mixed and returns it; beta and out may not share its memory. Works under autograd: the backward does
// not need mixed.
at::Tensor& hyper_connection_write_(at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out);

// All gradients, from one pass over the tokens; parameters' are undefined where the parameter is absent. Sums over
// tokens are taken in blocks that depend on the sizes alone: the same bits for any number of threads.
struct HyperConnectionGradients {
  at::Tensor streams, static_alpha, static_beta, norm_weight, norm_bias, dynamic_alpha_proj, dynamic_beta_proj,
      dynamic_alpha_scale, dynamic_beta_scale;

  static constexpr auto fields() {
    using To = HyperConnectionGradients;
    return std::tuple{&To::streams,           &To::static_alpha,        &To::static_beta,
                      &To::norm_weight,       &To::norm_bias,           &To::dynamic_alpha_proj,
                      &To::dynamic_beta_proj, &To::dynamic_alpha_scale, &To::dynamic_beta_scale};
  }
};
// grad: the gradients of input, mixed and beta (kept is not read); `kept` as hyper_connection_read returned it.
HyperConnectionGradients hyper_connection_read_backward(const HyperConnectionRead& grad, const at::Tensor& streams,
                                                        const HyperConnection& parameters, const at::Tensor& kept);

// (d beta, d out) for grad [B, T, n, d], the gradient of Hs' and of mixed:
//   d beta_i = <grad_i, out>       d out = sum_i beta_i grad_i
std::tuple<at::Tensor, at::Tensor> hyper_connection_write_backward(const at::Tensor& grad, const at::Tensor& beta,
                                                                   const at::Tensor& out);

}  // namespace satformer::ops
