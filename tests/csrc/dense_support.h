#pragma once
// What the tests of depth_weighted_sum and hyper_connection share.
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace satformer::tests {

inline constexpr std::array kValueDtypes{at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};

// The first line of the error that `call` throws; empty when it throws none.
std::string first_line_of_error(const std::function<void()>& call);

// A leaf with the same memory layout that requires grad.
at::Tensor leaf(const at::Tensor& x);

// Central differences of `value` in every element of x (float64, contiguous), which `value` reads.
at::Tensor central_differences(const std::function<double()>& value, const at::Tensor& x);

// The largest element of |a - b| / max(1, |b|); infinite for different shapes or NaN, 0 for empty tensors.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace satformer::tests
