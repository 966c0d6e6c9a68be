#pragma once
// What the tests of depth_weighted_sum and hyper_connection share.
#include <ATen/core/Tensor.h>

#include <array>

namespace satformer::tests {

inline constexpr std::array kValueDtypes{at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};

// A leaf with the same memory layout that requires grad.
at::Tensor leaf(const at::Tensor& x);

// The largest element of |a - b| / max(1, |b|); infinite for different shapes or NaN, 0 for empty tensors.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace satformer::tests
