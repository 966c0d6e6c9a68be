#include "satformer/nn/rms_norm.h"

#include <ATen/ops/ones.h>

#include "csrc/ops/rms_norm.h"
#include "satformer/runtime/compute_dtype.h"

namespace satformer::nn {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return std::get<0>(ops::rms_norm(x, weight, eps, compute_dtype(x)));
}

at::Tensor RMSNormImpl::forward(const ResidualStream& x) const {
  if (!x.pending.defined()) return forward(x.sum);
  return std::get<1>(ops::add_rms_norm(x.sum, x.pending, weight, eps_, compute_dtype(x.sum)));
}

RMSNormImpl::RMSNormImpl(const RMSNormOptions& options, const at::TensorOptions& tensors) : eps_(options.eps) {
  weight = register_parameter("weight", at::ones({options.size}, tensors));
}

}  // namespace satformer::nn
