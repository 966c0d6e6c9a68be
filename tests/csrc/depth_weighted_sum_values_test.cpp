// depth_weighted_sum and inverse_rms against their composite definitions in float64, values and gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/depth_weighted_sum.h"
#include "csrc/ops/depth_weighted_sum_reference.h"
#include "tests/catch.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/depth_weighted_sum_support.h"
#include "tests/csrc/gated_value_mix_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {
namespace {

using torch::autograd::variable_list;

// One u for each term of a sum: S sources, d columns, C ways, all tokens for what they share.
double ulps_of(const DepthCase& c, bool over_tokens) {
  return kArithmeticUlps + static_cast<double>(c.S + c.d + c.C + (over_tokens ? c.B * c.T : 0));
}

void check_case(const DepthCase& c, std::uint64_t seed) {
  INFO(c.text());
  const ops::DepthSum in = make_depth_sum(c, seed), d = to_double(in);
  const std::vector<at::Tensor> grads = make_depth_grads(c, seed), double_grads = to_double(grads);

  const ops::DepthSum x = leaves(in), expected_x = leaves(d);
  const std::vector<at::Tensor> got = ops::depth_weighted_sum(x),
                                expected = ops::depth_weighted_sum_reference(expected_x),
                                magnitude = output_magnitudes(d);
  REQUIRE(got.size() == static_cast<std::size_t>(c.C));
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i].scalar_type() == c.dtype);
    CHECK(got[i].is_contiguous());
    CHECK(worst_error(got[i], expected[i], magnitude[i], c.dtype, ulps_of(c, false)) <= 1);
  }

  const variable_list inputs = flattened(x);
  const variable_list got_grads = torch::autograd::grad(got, inputs, grads);
  const variable_list expected_grads = torch::autograd::grad(expected, flattened(expected_x), double_grads);
  const std::vector<at::Tensor> magnitudes = gradient_magnitudes(d, double_grads);
  REQUIRE(magnitudes.size() == inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    INFO("gradient " << i << " of shape " << inputs[i].sizes());
    CHECK(got_grads[i].scalar_type() == inputs[i].scalar_type());
    CHECK(worst_error(got_grads[i], expected_grads[i], magnitudes[i], c.dtype, ulps_of(c, true)) <= 1);
  }
}

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
          check_case(c, seed++);
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
        check_case(c, seed++);
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
      const variable_list got = torch::autograd::grad(outputs(x), flattened(x), grads);
      const std::vector<at::Tensor> inputs = flattened(in);
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
      const at::Tensor in = at::randn(shape).to(dtype);
      const at::Tensor x = leaf(in), d = leaf(in.to(at::kDouble));
      const at::Tensor got = ops::inverse_rms(x, 1e-6), expected = ops::inverse_rms_reference(d, 1e-6);
      const double n = static_cast<double>(shape.back());
      CHECK(worst_error(got, expected, expected.abs(), dtype, kArithmeticUlps + n) <= 1);
      const at::Tensor grad = at::randn(expected.sizes()).to(got.scalar_type());
      const at::Tensor got_grad = torch::autograd::grad({got}, {x}, {grad})[0],
                       expected_grad = torch::autograd::grad({expected}, {d}, {grad.to(at::kDouble)})[0];
      CHECK(got_grad.scalar_type() == dtype);
      CHECK(worst_error(got_grad, expected_grad, expected_grad.abs(), dtype, kArithmeticUlps + 3 * n) <= 1);
    }
  }
  const at::Tensor wide = at::randn({4, 3, 20}), part = wide.slice(2, 3, 19).transpose(0, 1);
  CHECK(at::equal(ops::inverse_rms(part, 1e-6), ops::inverse_rms(part.contiguous(), 1e-6)));
}

}  // namespace satformer::tests
