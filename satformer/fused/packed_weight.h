#pragma once
// The weights of linear layers that read the same input, adjacent in one storage: one matrix product serves all of
// them, forward and backward, while each stays a parameter of its own under its checkpoint name.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace satformer::fused {

// The parameters of y = x W^T + b. They are handles: who moves the layer's parameters moves these.
struct LinearParameters {
  at::Tensor weight;     // W [out_features, in_features]
  at::Tensor bias = {};  // b [out_features]; undefined without bias
};

class PackedWeight {
 public:
  PackedWeight() = default;
  // Layers of one in_features, in the order of the product's columns.
  explicit PackedWeight(std::vector<LinearParameters> layers) : layers_(std::move(layers)) {}

  // W [sum of out_features, in_features] in `dtype`, without gradient. In the parameters' own dtype it is their memory;
  // in another it is a copy that is made again when a parameter has changed.
  at::Tensor weight(at::ScalarType dtype);
  // b [sum of out_features] in `dtype`, 0 where a layer has none; undefined when no layer has one.
  at::Tensor bias(at::ScalarType dtype) const;

  // The parameters, weights first, then the biases that exist: what an autograd function takes as inputs.
  std::vector<at::Tensor> parameters() const;
  // The gradients of parameters() from those of weight() and bias().
  std::vector<at::Tensor> split_gradients(const at::Tensor& weight, const at::Tensor& bias) const;
  bool has_bias() const;

 private:
  bool adjacent() const;
  void make_adjacent();
  at::Tensor whole() const;
  std::vector<std::uint32_t> versions() const;

  std::vector<LinearParameters> layers_;
  at::Tensor cast_;  // in another dtype, made from the parameters at cast_versions_
  std::vector<std::uint32_t> cast_versions_;
  const void* cast_source_ = nullptr;
};

}  // namespace satformer::fused
