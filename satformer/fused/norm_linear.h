#pragma once
// The products of a pre-norm block, each with what stands before it, as autograd nodes that keep little: add, RMSNorm
// and product; SwiGLU and product; product alone. Layers that read the same input are one product (packed_weight.h).
// Differentiable once.
#include "satformer/fused/packed_weight.h"
#include "satformer/fused/residual_stream.h"

namespace satformer::fused {

// RMSNorm(x) = x / sqrt(mean(x^2) + eps) * weight.
struct Norm {
  at::Tensor weight;  // [d]
  double eps = 0;
};

// A stream read by a pre-norm branch.
struct NormLinearOutput {
  at::Tensor sum;  // the stream with its pending part added
  at::Tensor y;    // [B, T, sum of out_features] in compute_dtype(stream)
};

//   sum = x.sum + x.pending
//   y   = (RMSNorm(sum) weight) W^T + b
// For the backward pass the normalised stream is computed again from its kept inverse norm; the weights' gradients come
// from one product.
NormLinearOutput norm_linear(const ResidualStream& x, const Norm& norm, PackedWeight& weight);

// y = x W^T + b in compute_dtype(x).
at::Tensor packed_linear(const at::Tensor& x, PackedWeight& weight);

// y = (silu(g) * u) W^T for packed = [g | u], [B, T, 2 f] -> [B, T, d]. The product silu(g) * u is not kept; the
// backward pass overwrites packed, unless the graph is kept: no one else may read it then.
at::Tensor swiglu_linear(const at::Tensor& packed, PackedWeight& weight);

}  // namespace satformer::fused
