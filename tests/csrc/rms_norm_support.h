#pragma once
// Inputs of the tests of rms_norm, and the check of one case on either device.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "tests/csrc/operator_support.h"

namespace satformer::tests::norm_tests {

using Sizes = std::vector<std::int64_t>;

inline constexpr double kEps = 1e-5;

struct NormCase {
  Sizes sizes{4, 3, 40};
  at::ScalarType dtype = at::kFloat, residual_dtype = at::kFloat, out_dtype = at::kFloat, weight_dtype = at::kFloat;
  RowLayout layout = RowLayout::kContiguous;
  std::string text() const;  // for failure messages
};

struct NormInputs {
  at::Tensor x, residual, weight, grad_y, grad_sum;
};

// Standard normal numbers, the same for the same seed.
NormInputs make_norm_inputs(const NormCase& test_case, std::uint64_t seed);

// Values and gradients of every operator of the family against the composite definition in float64.
void check(const NormCase& test_case, std::uint64_t seed, at::Device device = at::kCPU);

}  // namespace satformer::tests::norm_tests
