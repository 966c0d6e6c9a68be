// hyper_connection_read and hyper_connection_write against their composite definitions in float64, values and
// gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/hyper_connection.h"
#include "csrc/ops/hyper_connection_reference.h"
#include "tests/catch.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/hyper_connection_support.h"
#include "tests/csrc/operator_support.h"

namespace satformer::tests {
namespace {

using torch::autograd::variable_list;

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
        check_hyper_read(c, seed++);
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
        check_hyper_read(c, seed++);
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
      check_hyper_write(c, dtype);
      check_hyper_write(c, at::kBFloat16);
      c.parameters_dtype = dtype;
      check_hyper_write(c, dtype);
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
      const variable_list got = torch::autograd::grad({value(x)}, ops::tensors_of(x), {in.grad_mixed});
      const std::vector<at::Tensor> inputs = ops::tensors_of(in);
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
