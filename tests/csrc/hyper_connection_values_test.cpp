// hyper_connection_read and hyper_connection_write against their composite definitions in float64, values and
// gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/hyper_connection.h"
#include "csrc/ops/hyper_connection_reference.h"
#include "tests/catch.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/gated_value_mix_support.h"
#include "tests/csrc/hyper_connection_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {
namespace {

using torch::autograd::variable_list;

void check_read(const HyperCase& c, std::uint64_t seed) {
  INFO(c.text());
  const HyperInputs in = make_hyper(c, seed), d = to_double(in);
  const HyperInputs x = leaves(in), expected_x = leaves(d);
  const auto got = ops::hyper_connection_read(x.streams, x.parameters);
  const auto expected = ops::hyper_connection_read_reference(expected_x.streams, expected_x.parameters);
  const HyperMagnitudes magnitudes = hyper_magnitudes(d);
  // One u for each term of a sum: d columns and n + 2 coefficients, and all tokens for the parameters.
  const double ulps = kArithmeticUlps + static_cast<double>(c.d + 2 * c.n + 4);
  const double sum_ulps = ulps + static_cast<double>(c.B * c.T * c.n);
  CHECK(worst_error(got.input, expected.input, magnitudes.outputs[0], c.dtype, ulps) <= 1);
  CHECK(worst_error(got.mixed, expected.mixed, magnitudes.outputs[1], c.dtype, ulps) <= 1);
  CHECK(worst_error(got.beta, expected.beta, magnitudes.outputs[2], c.dtype, ulps) <= 1);
  CHECK(got.input.scalar_type() == c.dtype);
  CHECK(got.mixed.is_contiguous());

  const variable_list inputs = flattened(x);
  const variable_list got_grads =
      torch::autograd::grad({got.input, got.mixed, got.beta}, inputs, {in.grad_input, in.grad_mixed, in.grad_beta});
  const variable_list expected_grads =
      torch::autograd::grad({expected.input, expected.mixed, expected.beta}, flattened(expected_x),
                            {d.grad_input, d.grad_mixed, d.grad_beta});
  REQUIRE(magnitudes.gradients.size() == inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    INFO("gradient " << i << " of shape " << inputs[i].sizes());
    CHECK(got_grads[i].scalar_type() == inputs[i].scalar_type());
    CHECK(worst_error(got_grads[i], expected_grads[i], magnitudes.gradients[i], c.dtype, i == 0 ? ulps : sum_ulps) <=
          1);
  }
}

struct WriteInputs {
  at::Tensor mixed, beta, out, grad;
};

WriteInputs make_write(const HyperCase& c, at::ScalarType out_dtype) {
  return {at::randn({c.B, c.T, c.n, c.d}).to(c.dtype), at::randn({c.B, c.T, c.n}).to(c.parameters_dtype),
          at::randn({c.B, c.T, c.d}).to(out_dtype), at::randn({c.B, c.T, c.n, c.d}).to(c.dtype)};
}

void check_write(const HyperCase& c, at::ScalarType out_dtype) {
  INFO(c.text() << " out " << c10::toString(out_dtype));
  const WriteInputs in = make_write(c, out_dtype);
  const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
  // out is rounded to the streams' dtype before it is added.
  const at::Tensor rounded_out = wide(in.out.to(c.dtype));
  const variable_list x{leaf(in.mixed), leaf(in.beta), leaf(in.out)},
      d{leaf(wide(in.mixed)), leaf(wide(in.beta)), leaf(rounded_out)};
  const at::Tensor expected = ops::hyper_connection_write_reference(d[0], d[1], d[2]);
  const variable_list expected_grads = torch::autograd::grad({expected}, d, {wide(in.grad)});
  const at::Tensor b = wide(in.beta).abs(), g = wide(in.grad).abs();
  const at::Tensor magnitude = wide(in.mixed).abs() + b.unsqueeze(-1) * rounded_out.abs().unsqueeze(2);
  const std::vector<at::Tensor> magnitudes{g, (g * rounded_out.abs().unsqueeze(2)).sum(-1),
                                           (g * b.unsqueeze(-1)).sum(2)};
  const double ulps = kArithmeticUlps + static_cast<double>(c.d + c.n);
  for (const bool in_place : {false, true}) {
    at::Tensor mixed = x[0] * 1;  // a leaf may not be overwritten
    const at::Tensor got =
        in_place ? ops::hyper_connection_write_(mixed, x[1], x[2]) : ops::hyper_connection_write(mixed, x[1], x[2]);
    CHECK(got.scalar_type() == c.dtype);
    CHECK(worst_error(got, expected, magnitude, c.dtype, ulps) <= 1);
    const variable_list got_grads = torch::autograd::grad({got}, x, {in.grad});
    CHECK(at::equal(got_grads[0], in.grad));
    for (std::size_t i = 1; i < x.size(); ++i) {
      CHECK(got_grads[i].scalar_type() == x[i].scalar_type());
      // d out is rounded twice where out has another dtype: to the streams', then to its own.
      const double twice = i == 2 && out_dtype != c.dtype ? 2 : 1;
      CHECK(worst_error(got_grads[i], expected_grads[i], magnitudes[i], c.dtype, ulps) <= twice);
    }
  }
}

}  // namespace

TEST_CASE("hyper_connection_read: values and gradients for every form, dtype and number of streams", "[ops]") {
  std::uint64_t seed = 1;
  for (const at::ScalarType dtype : kValueDtypes) {
    for (std::int64_t n = 1; n <= ops::kMaxStreams; ++n) {
      for (int form = 0; form < 8; ++form) {
        HyperCase c;
        c.n = n, c.d = 21, c.dtype = dtype;
        c.dynamic = form < 6, c.layer_norm = form & 1, c.use_tanh = !(form & 2), c.expanded = seed % 3 == 0;
        c.parameters_dtype = seed % 2 == 0 ? at::kFloat : dtype;
        check_read(c, seed++);
      }
    }
  }
}

TEST_CASE("hyper_connection_read: values and gradients for every size", "[ops]") {
  constexpr std::array<std::array<std::int64_t, 4>, 8> kSizes{{{1, 1, 1, 1},
                                                               {1, 2, 2, 37},
                                                               {0, 3, 4, 8},
                                                               {2, 0, 4, 8},
                                                               {1, 70, 4, 64},
                                                               {3, 43, 2, 8},
                                                               {1, 3, 4, 257},
                                                               {1, 2, 3, 1000}}};
  std::uint64_t seed = 1;
  for (const at::ScalarType dtype : kValueDtypes) {
    for (const auto& [B, T, n, d] : kSizes) {
      for (const bool layer_norm : {false, true}) {
        HyperCase c;
        c.B = B, c.T = T, c.n = n, c.d = d, c.layer_norm = layer_norm, c.dtype = dtype;
        check_read(c, seed++);
      }
    }
  }
}

TEST_CASE("hyper_connection_write: values and gradients for every dtype and size", "[ops]") {
  constexpr std::array<std::array<std::int64_t, 4>, 7> kSizes{
      {{1, 1, 1, 1}, {2, 3, 4, 21}, {0, 3, 4, 8}, {2, 0, 4, 8}, {1, 70, 4, 64}, {1, 3, 8, 257}, {1, 2, 2, 16}}};
  for (const at::ScalarType dtype : kValueDtypes) {
    for (const auto& [B, T, n, d] : kSizes) {
      HyperCase c;
      c.B = B, c.T = T, c.n = n, c.d = d, c.dtype = dtype;
      check_write(c, dtype);
      check_write(c, at::kBFloat16);
      c.parameters_dtype = dtype;
      check_write(c, dtype);
    }
  }
}

TEST_CASE("hyper_connection: kernel and composite definition agree with central differences", "[ops]") {
  for (int form = 0; form < 4; ++form) {
    HyperCase c;
    c.B = 1, c.T = 2, c.n = 2, c.d = 5, c.dtype = c.parameters_dtype = at::kDouble;
    c.layer_norm = form & 1, c.use_tanh = form & 2;
    const HyperInputs in = make_hyper(c, 7);
    const at::Tensor out = at::randn({c.B, c.T, c.d}, at::kDouble);
    for (const bool kernel : {false, true}) {
      // Both operators: Hs' = write(read(Hs), out + input).
      const auto value = [&](const HyperInputs& x) {
        const auto read = kernel ? ops::hyper_connection_read(x.streams, x.parameters)
                                 : ops::hyper_connection_read_reference(x.streams, x.parameters);
        const at::Tensor added = out + read.input;
        return kernel ? ops::hyper_connection_write(read.mixed, read.beta, added)
                      : ops::hyper_connection_write_reference(read.mixed, read.beta, added);
      };
      const HyperInputs x = leaves(in);
      const variable_list got = torch::autograd::grad({value(x)}, flattened(x), {in.grad_mixed});
      const std::vector<at::Tensor> inputs = flattened(in);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        INFO("kernel " << kernel << " form " << form << " gradient " << i);
        const auto loss = [&] { return (in.grad_mixed * value(in)).sum(); };
        // step^2 and rounding / step: about 1e-10
        CHECK(relative_difference(got[i], central_differences(loss, inputs[i])) < 1e-7);
      }
    }
  }
}

}  // namespace satformer::tests
