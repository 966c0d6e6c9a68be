#pragma once
// Inputs of the tests of linear_cross_entropy, and the check of one case on either device.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "tests/csrc/operator_support.h"

namespace satformer::tests::cross_entropy_tests {

inline constexpr std::int64_t kIgnored = -100;

struct LossInputs {
  at::Tensor hidden, weight, targets;
};

// The same numbers for the same seed; every seventh target is ignored.
LossInputs make_loss_inputs(std::int64_t N, std::int64_t d, std::int64_t V, at::ScalarType dtype, std::uint64_t seed,
                            RowLayout layout = RowLayout::kContiguous);

// Loss and gradients of both operators, computed on `device`, against the composite definition in float64.
void check(const LossInputs& inputs, double scale, at::Device device = at::kCPU);

}  // namespace satformer::tests::cross_entropy_tests
