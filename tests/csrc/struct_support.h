#pragma once
// An operator's struct (csrc/ops/tensor_fields.h) in float64, as leaves of autograd, or on another device.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "csrc/ops/tensor_fields.h"
#include "tests/csrc/cuda_support.h"

namespace satformer::tests {

// The same numbers, contiguous.
template <ops::HasFields Struct>
Struct to_double(const Struct& x) {
  return ops::map_tensors(x, [](const at::Tensor& tensor) { return tensor.to(at::kDouble).contiguous(); });
}

// The same tensors, memory layout included, as leaves that require grad.
template <ops::HasFields Struct>
Struct leaves(const Struct& x) {
  return ops::map_tensors(x, [](const at::Tensor& tensor) { return tensor.detach().requires_grad_(); });
}

template <ops::HasFields Struct>
Struct on(at::Device device, const Struct& x) {
  return ops::map_tensors(x, [&](const at::Tensor& tensor) { return on(device, tensor); });
}

}  // namespace satformer::tests
