#pragma once
// Causal attention of a training step on the CPU, in blocks that stay in cache: the scores of a whole sequence never
// exist (Dao et al., FlashAttention, arXiv 2205.14135; FlashAttention-2, arXiv 2307.08691).
//
//   s[i, j] = scale q[i] . k[j]  for j <= i,   p = softmax(s),   out[i] = sum over j <= i of p[i, j] v[j]
//
//   q     [B, T, H, hd]     float32 or float64; any strides; where hd is not contiguous, it is copied first
//   k, v  [B, T, H_kv, hd]  dtype of q. H_kv divides H: query head h reads head h / (H / H_kv) (GQA)
//   scale                   1 / sqrt(hd)
//
// CPU alone: on CUDA, and in the dtypes that processors multiply natively, LibTorch's scaled_dot_product_attention is
// the one to call. A wrong argument is a c10::Error that names operator, argument and what it got.
#include <ATen/core/Tensor.h>

#include <tuple>

namespace satformer::ops {

// (out [B, T, H, hd], contiguous; logsumexp [B, H, T] of each query's scores). Differentiable, twice, in q, k and v;
// logsumexp is not. Saved: all five. Not a number in a query's scores, or infinity, makes its output NaN.
std::tuple<at::Tensor, at::Tensor> causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// The gradients of q, k and v, contiguous, for the gradient `grad` [B, T, H, hd] of out. With dp = grad v^T:
//
//   ds = p (dp - sum over hd of grad out),   dq = scale ds k,   dk = scale ds^T q,   dv = p^T grad
//
// p is made again from logsumexp. The number of threads changes no bit.
std::tuple<at::Tensor, at::Tensor, at::Tensor> causal_attention_backward(const at::Tensor& grad, const at::Tensor& q,
                                                                         const at::Tensor& k, const at::Tensor& v,
                                                                         const at::Tensor& out,
                                                                         const at::Tensor& logsumexp);

}  // namespace satformer::ops
