#pragma once
// Random tensors, and how far two tensors are apart.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <cstdint>
#include <vector>

namespace satformer::testing {

// Standard normal numbers, the same for the same seed.
inline at::Tensor normal(const std::vector<std::int64_t>& sizes, at::ScalarType dtype, std::uint64_t seed) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble).to(dtype);
}

// max |a - b|; 0 for tensors without elements.
inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0.0;
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

// max |a - b| / max |b|; 0 where a equals b.
inline double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const double difference = largest_difference(a, b);
  return difference == 0.0 ? 0.0 : difference / b.detach().to(at::kDouble).abs().max().item<double>();
}

}  // namespace satformer::testing
