#pragma once
// Linear layers, by themselves and several as one product.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "satformer/fused/packed_weight.h"

namespace satformer::nn {

struct LinearOptions {
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool bias = false;
  bool decays = true;  // weight decay acts on the weight; not on a gate's or an aggregation's
};

// y = x W^T (+ b). Unlike torch::nn::Linear it leaves the weight uninitialised: random numbers come from the model's
// seed, and a model about to be loaded needs none.
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(const LinearOptions& options, const at::TensorOptions& tensors);
  at::Tensor forward(const at::Tensor& x);

  at::Tensor weight;  // [out_features, in_features]
  at::Tensor bias;    // [out_features], 0 at the start; undefined without bias
  bool decays;        // LinearOptions::decays
};
TORCH_MODULE(Linear);

// The layers' weights for one product (fused::PackedWeight), in this order.
fused::PackedWeight packed_weight(const std::vector<Linear>& layers);

}  // namespace satformer::nn
