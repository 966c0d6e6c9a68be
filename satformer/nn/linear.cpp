#include "satformer/nn/linear.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <utility>

namespace satformer::nn {

LinearImpl::LinearImpl(const LinearOptions& options, const at::TensorOptions& tensors) : decays(options.decays) {
  weight = register_parameter("weight", at::empty({options.out_features, options.in_features}, tensors));
  if (options.bias) bias = register_parameter("bias", at::zeros({options.out_features}, tensors));
}

at::Tensor LinearImpl::forward(const at::Tensor& x) { return at::linear(x, weight, bias); }

fused::PackedWeight packed_weight(const std::vector<Linear>& layers) {
  std::vector<fused::LinearParameters> parameters;
  for (const Linear& layer : layers) parameters.push_back({layer->weight, layer->bias});
  return fused::PackedWeight(std::move(parameters));
}

}  // namespace satformer::nn
