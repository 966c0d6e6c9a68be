#pragma once
// RMSNorm, as a function and as a module.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "satformer/fused/norm_linear.h"
#include "satformer/fused/residual_stream.h"

namespace satformer::nn {

using fused::ResidualStream;

// y = x / sqrt(mean(x^2) + eps) * weight, the mean over the last dimension.
//   x       [..., n]  any floating dtype
//   weight  [n]
//   y       [..., n]  compute_dtype(x), so that under autocast one cast serves every projection that reads y
// Computed in float32 (float64 for float64). Differentiable twice in x and weight.
// Source: Zhang and Sennrich 2019, equation 4.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

struct RMSNormOptions {
  std::int64_t size = 0;
  double eps = 1e-6;
};

class RMSNormImpl : public torch::nn::Module {
 public:
  RMSNormImpl(const RMSNormOptions& options, const at::TensorOptions& tensors);
  at::Tensor forward(const at::Tensor& x) const { return rms_norm(x, weight, eps_); }
  // RMSNorm of the stream, whose pending part is added in the same pass.
  at::Tensor forward(const ResidualStream& x) const;
  double eps() const { return eps_; }
  fused::Norm fused_norm() const { return {weight, eps_}; }

  at::Tensor weight;  // [size], 1 at the start

 private:
  double eps_;
};
TORCH_MODULE(RMSNorm);

}  // namespace satformer::nn
