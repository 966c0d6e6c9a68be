#include "satformer/nn/mlp.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>

namespace satformer::nn {

MLPImpl::MLPImpl(const MLPOptions& options, const at::TensorOptions& tensors) {
  const std::int64_t d = options.hidden_size, f = options.intermediate_size;
  gate_proj = register_module("gate_proj", Linear(LinearOptions{d, f}, tensors));
  up_proj = register_module("up_proj", Linear(LinearOptions{d, f}, tensors));
  down_proj = register_module("down_proj", Linear(LinearOptions{f, d}, tensors));
}

at::Tensor MLPImpl::forward(const at::Tensor& x) {
  return down_proj->forward(at::silu(gate_proj->forward(x)) * up_proj->forward(x));
}

}  // namespace satformer::nn
