#pragma once
// The depth-weighted sum of DenseFormer (Pagliardini et al. 2024, equation 1) and MUDDFormer (Xiao et al. 2025,
// equations 3 to 6): C weighted sums over the S earlier representations, which stay where they are (never stacked).
//
//   n_j   = g_j * r_j[..., None] * x_j            j < S     (x_j itself without source norms)
//   sum_c = sum over j of w[.., c, j] n_j         c < C
//   out_c = p_c * rms(sum_c) + base               rms(s) = s / sqrt(mean(s^2) + output_norm_eps); the norm and the
//                                                 base each where given
//
// Each source is read once for all C ways. Arithmetic is in float32 (float64 for float64) with one rounding of out_c.
// Differentiable once, in every tensor. On CUDA at most 64 sources and 8 ways. A wrong argument is a c10::Error that
// names operator, argument and what it got.
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

namespace satformer::ops {

struct DepthSum {
  std::vector<at::Tensor> sources;  // x_j: S >= 1 tensors [B, T, d], one dtype (float32, bfloat16 or float16; float64
                                    // on CPU); the last dimension is contiguous, the other strides are free
  at::Tensor weights;               // w: [C, S], or [B, T, C, S] for weights per token; any floating dtype
  std::optional<at::Tensor> base;   // [B, T, d], like a source
  // The norm of each source, both or neither (empty): its weight g_j and the kept r_j = inverse_rms(x_j, eps), which
  // later sums over the same source share. An r_j has a gradient of its own; inverse_rms passes it on to x_j.
  std::vector<at::Tensor> source_norm_weights;  // S tensors [d], any floating dtype
  std::vector<at::Tensor> source_inverse_rms;   // S tensors [B, T], float32 (float64 for float64)
  std::vector<at::Tensor> output_norm_weights;  // p_c: C tensors [d], any floating dtype; empty: no norm of the sums
  double output_norm_eps = 1e-6;

  static constexpr auto fields() {  // in the order of the schema (csrc/ops/tensor_fields.h)
    using Sum = DepthSum;
    return std::tuple{&Sum::sources,
                      &Sum::weights,
                      &Sum::base,
                      &Sum::source_norm_weights,
                      &Sum::source_inverse_rms,
                      &Sum::output_norm_weights,
                      &Sum::output_norm_eps};
  }
};

// out: C tensors [B, T, d], contiguous, of the sources' dtype.
std::vector<at::Tensor> depth_weighted_sum(const DepthSum& sum);

// r = 1 / sqrt(mean(x^2) + eps) over the last dimension: [...] of x [..., d], float32 (float64 for float64). x is of
// the dtypes of a source, contiguous in its last dimension. Differentiable once.
at::Tensor inverse_rms(const at::Tensor& x, double eps);

// -grad r^3 x / d, contiguous, x's dtype: the gradient of x for that of inverse = inverse_rms(x, eps).
at::Tensor inverse_rms_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse);

// The fields of DepthSum that have a gradient; as a mask, in this order.
struct DepthSumGradients {
  std::vector<at::Tensor> sources;  // contiguous
  at::Tensor weights, base;
  std::vector<at::Tensor> source_norm_weights, source_inverse_rms, output_norm_weights;

  static constexpr auto fields() {
    using To = DepthSumGradients;
    return std::tuple{&To::sources,
                      &To::weights,
                      &To::base,
                      &To::source_norm_weights,
                      &To::source_inverse_rms,
                      &To::output_norm_weights};
  }
};
using DepthSumMask = std::array<bool, 6>;

// The gradients for `grads`, C tensors [B, T, d] of the sources' dtype; those that the mask leaves out or the sum does
// not have are undefined or empty. With G_c the gradient of sum_c:
//
//   d x_j = g_j r_j sum_c w_cj G_c                 d w_cj = <G_c, n_j>, for [C, S] summed over all tokens
//   d r_j = sum_c w_cj <G_c, g_j x_j>              d g_j  = sum over tokens of r_j x_j sum_c w_cj G_c
//   d base = sum_c grad_c                          d p_c  = sum over tokens of grad_c rms(sum_c)
//
// Sums over tokens are taken in blocks that depend on the sizes alone: the same bits for any number of threads.
DepthSumGradients depth_weighted_sum_backward(const std::vector<at::Tensor>& grads, const DepthSum& sum,
                                              const DepthSumMask& mask = {true, true, true, true, true, true});

// The same, but d x_j is added into grad_sources[j] ([B, T, d], the sources' dtype, contiguous in the last dimension)
// and `sources` of the result stays empty: a source that many layers read needs one buffer. The buffers share memory
// neither with one another nor with what is read. In eager mode alone: torch.compile cannot trace it.
DepthSumGradients depth_weighted_sum_backward_(std::vector<at::Tensor>& grad_sources,
                                               const std::vector<at::Tensor>& grads, const DepthSum& sum,
                                               const DepthSumMask& mask = {true, true, true, true, true, true});

}  // namespace satformer::ops
