#include "satformer/nn/mlp.h"

#include <ATen/ops/cat.h>

#include "csrc/ops/swiglu.h"

namespace satformer::nn {

MLPImpl::MLPImpl(const MLPOptions& options, const at::TensorOptions& tensors) {
  const std::int64_t d = options.hidden_size, f = options.intermediate_size;
  gate_proj = register_module("gate_proj", Linear(LinearOptions{d, f}, tensors));
  up_proj = register_module("up_proj", Linear(LinearOptions{d, f}, tensors));
  down_proj = register_module("down_proj", Linear(LinearOptions{f, d}, tensors));
  gate_up_ = packed_weight({gate_proj, up_proj});
  down_ = packed_weight({down_proj});
}

ResidualStream MLPImpl::forward(const ResidualStream& x, const RMSNorm& norm, const LayerContext& context) {
  if (context.fused) {
    const fused::NormLinearOutput read = fused::norm_linear(x, norm->fused_norm(), gate_up_);
    return {read.sum, fused::swiglu_linear(read.y, down_)};
  }
  const at::Tensor sum = x.value(), u = norm->forward(sum);
  const at::Tensor gate_and_up = at::cat({gate_proj->forward(u), up_proj->forward(u)}, -1);
  return {sum, down_proj->forward(ops::swiglu(gate_and_up))};
}

}  // namespace satformer::nn
