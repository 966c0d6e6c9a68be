// depth_weighted_sum and inverse_rms against their composite definitions in float64, values and gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/depth_weighted_sum.h"
#include "csrc/ops/depth_weighted_sum_reference.h"
#include "tests/catch.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/depth_weighted_sum_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {
namespace {

using torch::autograd::variable_list;

}  // namespace

TEST_CASE("depth_weighted_sum: values and gradients for every form, dtype and number of sources", "[ops]") {
  std::uint64_t seed = 1;
  for (const at::ScalarType dtype : kValueDtypes) {
    for (std::int64_t S = 1; S <= 9; ++S) {
      for (const std::int64_t C : {1, 4}) {
        for (int form = 0; form < 16; ++form) {
          DepthCase c;
          c.S = S, c.C = C, c.dtype = dtype, c.d = 21;
          c.per_token = form & 1, c.base = form & 2, c.source_norms = form & 4, c.output_norms = form & 8;
          c.strided = seed % 3 == 0;
          c.parameters_dtype = seed % 2 == 0 ? at::kFloat : dtype;
          check_depth_sum(c, seed++);
        }
      }
    }
  }
}

TEST_CASE("depth_weighted_sum: values and gradients for every size", "[ops]") {
  constexpr std::array<std::array<std::int64_t, 5>, 9> kSizes{{{1, 1, 1, 1, 1},
                                                               {2, 3, 8, 2, 2},
                                                               {1, 2, 37, 5, 7},
                                                               {1, 70, 64, 13, 3},
                                                               {1, 3, 257, 2, 13},
                                                               {0, 3, 8, 2, 4},
                                                               {2, 0, 8, 2, 1},
                                                               {3, 43, 16, 4, 5},
                                                               {1, 2, 1000, 3, 4}}};
  std::uint64_t seed = 1;
  for (const at::ScalarType dtype : kValueDtypes) {
    for (const auto& [B, T, d, S, C] : kSizes) {
      for (const bool norms : {false, true}) {
        DepthCase c;
        c.B = B, c.T = T, c.d = d, c.S = S, c.C = C, c.dtype = dtype;
        c.source_norms = norms, c.output_norms = norms, c.base = norms, c.per_token = seed % 2 == 0;
        check_depth_sum(c, seed++);
      }
    }
  }
}

TEST_CASE("depth_weighted_sum: kernel and composite definition agree with central differences", "[ops]") {
  for (const bool per_token : {false, true}) {
    DepthCase c;
    c.B = 1, c.T = 2, c.d = 5, c.S = 3, c.C = 2, c.dtype = c.parameters_dtype = at::kDouble;
    c.per_token = per_token, c.base = c.source_norms = c.output_norms = true;
    const ops::DepthSum in = make_depth_sum(c, 5);
    const std::vector<at::Tensor> grads = make_depth_grads(c, 5);
    for (const bool kernel : {false, true}) {
      const auto outputs = [&](const ops::DepthSum& sum) {
        return kernel ? ops::depth_weighted_sum(sum) : ops::depth_weighted_sum_reference(sum);
      };
      const ops::DepthSum x = leaves(in);
      const variable_list got = torch::autograd::grad(outputs(x), ops::tensors_of(x), grads);
      const std::vector<at::Tensor> inputs = ops::tensors_of(in);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        INFO("kernel " << kernel << " gradient " << i);
        const auto value = [&] {
          const std::vector<at::Tensor> out = outputs(in);
          return (grads[0] * out[0]).sum() + (grads[1] * out[1]).sum();
        };
        // step^2 and rounding / step: about 1e-10
        CHECK(relative_difference(got[i], central_differences(value, inputs[i])) < 1e-7);
      }
    }
  }
}

TEST_CASE("depth_weighted_sum: through inverse_rms, the gradient of a source is that of the whole norm", "[ops]") {
  DepthCase c;
  c.source_norms = true, c.dtype = c.parameters_dtype = at::kDouble, c.C = 2;
  const std::vector<at::Tensor> grads = make_depth_grads(c, 6);
  const auto gradients = [&](bool kernel) {
    ops::DepthSum x = leaves(make_depth_sum(c, 6));
    for (std::size_t j = 0; j < x.sources.size(); ++j) {
      x.source_inverse_rms[j] =
          kernel ? ops::inverse_rms(x.sources[j], kDepthEps) : ops::inverse_rms_reference(x.sources[j], kDepthEps);
    }
    return torch::autograd::grad(kernel ? ops::depth_weighted_sum(x) : ops::depth_weighted_sum_reference(x), x.sources,
                                 grads);
  };
  const variable_list got = gradients(true), expected = gradients(false);
  for (std::size_t j = 0; j < got.size(); ++j) CHECK(relative_difference(got[j], expected[j]) < 1e-13);
}

TEST_CASE("inverse_rms: values and gradients for every dtype and size", "[ops]") {
  for (const at::ScalarType dtype : kValueDtypes) {
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{7}, {3, 1}, {2, 3, 33}, {0, 4}, {130, 256}}) {
      check_inverse_rms(shape, dtype);
    }
  }
  const at::Tensor wide = at::randn({4, 3, 20}), part = wide.slice(2, 3, 19).transpose(0, 1);
  CHECK(at::equal(ops::inverse_rms(part, 1e-6), ops::inverse_rms(part.contiguous(), 1e-6)));
}

}  // namespace satformer::tests
