#pragma once
// Inputs and tolerances of the tests of depth_weighted_sum.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "csrc/ops/depth_weighted_sum.h"
#include "tests/csrc/struct_support.h"

namespace satformer::tests {

struct DepthCase {
  std::int64_t B = 2, T = 3, d = 16, S = 3, C = 1;
  bool per_token = false, base = false, source_norms = false, output_norms = false;
  bool strided = false;  // sources are slices of wider rows
  at::ScalarType dtype = at::kFloat;
  at::ScalarType parameters_dtype = at::kFloat;
  std::string text() const;  // for failure messages
};

inline constexpr double kDepthEps = 1e-3;

// Standard normal numbers, the same for the same seed. source_inverse_rms is that of the sources.
ops::DepthSum make_depth_sum(const DepthCase& test_case, std::uint64_t seed);
std::vector<at::Tensor> make_depth_grads(const DepthCase& test_case, std::uint64_t seed);
std::vector<at::Tensor> to_double(const std::vector<at::Tensor>& list);

// What errors of the arithmetic are relative to: the sums of the magnitudes of the terms, carried to first order
// through the output norm (see the .cpp). Of float64 tensors.
std::vector<at::Tensor> output_magnitudes(const ops::DepthSum& sum);
std::vector<at::Tensor> gradient_magnitudes(const ops::DepthSum& sum, const std::vector<at::Tensor>& grads);

// Values and gradients, computed on `device`, against the composite definition in float64.
void check_depth_sum(const DepthCase& test_case, std::uint64_t seed, at::Device device = at::kCPU);
void check_inverse_rms(const std::vector<std::int64_t>& shape, at::ScalarType dtype, at::Device device = at::kCPU);

}  // namespace satformer::tests
