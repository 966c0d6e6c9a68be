#pragma once
// The check of one case of swiglu, on either device.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "tests/csrc/operator_support.h"

namespace satformer::tests::swiglu_tests {

using Sizes = std::vector<std::int64_t>;

// Values and gradients for a packed tensor of `sizes`, against the composite definition in float64.
void check(const Sizes& sizes, at::ScalarType dtype, at::ScalarType grad_dtype, RowLayout layout, std::uint64_t seed,
           at::Device device = at::kCPU);

}  // namespace satformer::tests::swiglu_tests
