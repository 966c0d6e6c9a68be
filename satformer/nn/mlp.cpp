#include "satformer/nn/mlp.h"

namespace satformer::nn {

MLPImpl::MLPImpl(const MLPOptions& options, const at::TensorOptions& tensors) {
  const std::int64_t d = options.hidden_size, f = options.intermediate_size;
  gate_proj = register_module("gate_proj", Linear(LinearOptions{d, f}, tensors));
  up_proj = register_module("up_proj", Linear(LinearOptions{d, f}, tensors));
  down_proj = register_module("down_proj", Linear(LinearOptions{f, d}, tensors));
  gate_up_ = PackedWeight({gate_proj, up_proj});
  down_ = PackedWeight({down_proj});
}

ResidualStream MLPImpl::forward(const ResidualStream& x, const RMSNorm& norm) {
  const NormLinearOutput read = norm_linear(x, norm, gate_up_);
  return {read.sum, swiglu_linear(read.y, down_)};
}

}  // namespace satformer::nn
