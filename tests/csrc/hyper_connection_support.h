#pragma once
// Inputs and tolerances of the tests of hyper_connection.
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <tuple>
#include <vector>

#include "csrc/ops/hyper_connection.h"
#include "tests/csrc/struct_support.h"

namespace satformer::tests {

struct HyperCase {
  std::int64_t B = 2, T = 3, n = 4, d = 16;
  bool dynamic = true, layer_norm = false, use_tanh = true;
  bool expanded = false;  // the streams are one embedding, expanded
  at::ScalarType dtype = at::kFloat;
  at::ScalarType parameters_dtype = at::kFloat;
  std::string text() const;  // for failure messages
};

struct HyperInputs {
  at::Tensor streams;
  ops::HyperConnection parameters;
  at::Tensor grad_input, grad_mixed, grad_beta;

  // The tensors with a gradient, in the order of HyperConnectionGradients.
  static constexpr auto fields() { return std::tuple{&HyperInputs::streams, &HyperInputs::parameters}; }
};

// Standard normal numbers, the same for the same seed; projections small enough that tanh is not flat.
HyperInputs make_hyper(const HyperCase& test_case, std::uint64_t seed);
HyperInputs on(at::Device device, const HyperInputs& in);
HyperInputs to_double(const HyperInputs& in);

// What errors of the arithmetic are relative to, of float64 inputs: the sums of the magnitudes of the terms, carried to
// first order through f. In the order of input, mixed, beta, and of fields().
struct HyperMagnitudes {
  std::vector<at::Tensor> outputs, gradients;
};
HyperMagnitudes hyper_magnitudes(const HyperInputs& in);

// Values and gradients, computed on `device`, against the composite definition in float64. out_dtype: the module's
// output.
void check_hyper_read(const HyperCase& test_case, std::uint64_t seed, at::Device device = at::kCPU);
void check_hyper_write(const HyperCase& test_case, at::ScalarType out_dtype, at::Device device = at::kCPU);

}  // namespace satformer::tests
