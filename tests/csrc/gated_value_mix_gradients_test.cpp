// Gradients of gated_value_mix: the kernel against autograd through the composite definition in float64, and both
// against central differences.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/max.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>

#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/gated_value_mix_checks.h"
#include "csrc/ops/gated_value_mix_reference.h"
#include "tests/catch.h"
#include "tests/csrc/gated_value_mix_support.h"
#include "tests/csrc/struct_support.h"

namespace satformer::tests {
namespace {

using ops::Gate;
using torch::autograd::variable_list;

using Mix = std::function<at::Tensor(const MixInputs&, Gate)>;

at::Tensor kernel(const MixInputs& in, Gate gate) {
  return ops::gated_value_mix(in.v, in.first_values, in.logits, gate, in.scale, in.shift);
}
at::Tensor kernel_in_place(const MixInputs& in, Gate gate) {
  at::Tensor v = in.v.clone();  // a leaf may not be overwritten
  return ops::gated_value_mix_(v, in.first_values, in.logits, gate, in.scale, in.shift);
}
at::Tensor composite(const MixInputs& in, Gate gate) {
  return ops::gated_value_mix_reference(in.v, in.first_values, in.logits, gate, in.scale, in.shift);
}

// v, first_values, logits and, where given, scale and shift.
variable_list arguments(const MixInputs& in) { return ops::tensors_of(in); }

variable_list gradients(const Mix& mix, const MixInputs& in, Gate gate) {
  const MixInputs x = leaves(in);
  return torch::autograd::grad({mix(x, gate)}, arguments(x), {x.grad});
}

void check_gradients(const MixCase& c, std::uint64_t seed) {
  INFO(c.text());
  const MixInputs in = make_inputs(c, seed), d = to_double(in);
  const variable_list expected = gradients(composite, d, c.gate), magnitude = gradient_magnitudes(d, c.gate);
  const variable_list inputs = arguments(in);
  // One u for each term of a sum: over hd for d alpha', over all tokens for d scale and d shift.
  const double dot_ulps = kArithmeticUlps + static_cast<double>(c.sizes.hd);
  const double sum_ulps = dot_ulps + static_cast<double>(c.sizes.B * c.sizes.T * c.sizes.H);
  for (const Mix& mix : {Mix(kernel), Mix(kernel_in_place)}) {
    const variable_list got = gradients(mix, in, c.gate);
    REQUIRE(got.size() == expected.size());
    CHECK(at::equal(got[0], in.grad));
    for (std::size_t i = 1; i < got.size(); ++i) {
      INFO("argument " << i);
      CHECK(got[i].scalar_type() == inputs[i].scalar_type());
      const double ulps = i == 1 ? kArithmeticUlps : i == 2 ? dot_ulps : sum_ulps;
      CHECK(worst_error(got[i], expected[i], magnitude[i], c.dtype, ulps) <= 1);
    }
  }
}

// Central differences of sum(grad * v') in every element of x, which the inputs hold.
at::Tensor numeric_gradient(const Mix& mix, const MixInputs& in, Gate gate, const at::Tensor& x) {
  constexpr double kStep = 1e-5;
  at::Tensor result = at::zeros(x.sizes(), at::kDouble);
  double* data = x.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto value_at = [&](double value) {
      data[i] = value;
      return (in.grad * mix(in, gate)).sum().item<double>();
    };
    const double centre = data[i], above = value_at(centre + kStep), below = value_at(centre - kStep);
    data[i] = centre;
    result.mutable_data_ptr<double>()[i] = (above - below) / (2 * kStep);
  }
  return result;
}

MixInputs small_double_inputs(Gate gate, std::uint64_t seed) {
  MixCase c;
  c.sizes = {2, 2, 3, 4}, c.dtype = c.logits_dtype = c.intervention_dtype = at::kDouble, c.gate = gate;
  c.scale = Broadcast::kHeads, c.shift = Broadcast::kTokens;
  MixInputs in = make_inputs(c, seed);
  in.logits = in.logits + 0.1 * in.logits.sign();  // away from relu's corner
  return in;
}

}  // namespace

TEST_CASE("gated_value_mix: gradients for every dtype, gate, size and layout", "[ops]") {
  constexpr std::array<MixSizes, 11> kSizes{{{2, 5, 4, 64},
                                             {1, 1, 1, 1},
                                             {1, 3, 2, 3},
                                             {3, 2, 5, 7},
                                             {2, 3, 9, 16},
                                             {2, 2, 3, 37},
                                             {1, 2, 33, 128},
                                             {0, 3, 2, 8},
                                             {2, 0, 2, 8},
                                             {2, 3, 2, 0},
                                             {1, 130, 2, 257}}};
  constexpr std::array kLayouts{Layout::kContiguous, Layout::kPackedSlice, Layout::kHeadsFirst, Layout::kExpandedFirst,
                                Layout::kStridedLogits};
  std::uint64_t seed = 1;
  for (const auto& [dtype, logits_dtype] : kDtypes) {
    for (const Gate gate : kAllGates) {
      for (const MixSizes& sizes : kSizes) {
        MixCase c;
        c.sizes = sizes, c.dtype = dtype, c.logits_dtype = logits_dtype, c.gate = gate;
        c.layout = kLayouts[seed % kLayouts.size()];
        check_gradients(c, seed++);
      }
    }
  }
}

TEST_CASE("gated_value_mix: gradients of scale and shift of every shape", "[ops]") {
  constexpr std::array kKinds{Broadcast::kNone, Broadcast::kScalar, Broadcast::kHeads, Broadcast::kTokens,
                              Broadcast::kFull};
  constexpr std::array kInterventionDtypes{at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};
  std::uint64_t seed = 1;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const Gate gate : kAllGates) {
      for (const Broadcast scale : kKinds) {
        for (const Broadcast shift : kKinds) {
          MixCase c;
          c.sizes = {2, 3, 5, 17}, c.dtype = dtype, c.logits_dtype = at::kFloat, c.gate = gate;
          c.scale = scale, c.shift = shift;
          c.intervention_dtype = kInterventionDtypes[seed % kInterventionDtypes.size()];
          check_gradients(c, seed++);
        }
      }
    }
  }
}

TEST_CASE("gated_value_mix: the composite definition and the kernel agree with central differences", "[ops]") {
  for (const Gate gate : kAllGates) {
    for (const Mix& mix : {Mix(composite), Mix(kernel)}) {
      const MixInputs in = small_double_inputs(gate, 11);
      const variable_list got = gradients(mix, in, gate), inputs = arguments(in);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        INFO("gate " << ops::gate_name(gate) << " argument " << i);
        const at::Tensor expected = numeric_gradient(mix, in, gate, inputs[i]);
        CHECK((got[i] - expected).abs().max().item<double>() < 1e-8);  // step^2 and rounding / step: about 1e-10
      }
    }
  }
}

TEST_CASE("gated_value_mix_backward: the operator and its composite definition agree", "[ops]") {
  for (const Gate gate : kAllGates) {
    const MixInputs in = small_double_inputs(gate, 12);
    const auto got = ops::gated_value_mix_backward(in.grad, in.first_values, in.logits, gate, in.scale, in.shift,
                                                   {true, true, true, true});
    const auto expected = ops::gated_value_mix_backward_reference(in.grad, in.first_values, in.logits, gate, in.scale,
                                                                  in.shift, {true, true, true, true});
    CHECK((std::get<0>(got) - std::get<0>(expected)).abs().max().item<double>() < 1e-13);
    CHECK((std::get<1>(got) - std::get<1>(expected)).abs().max().item<double>() < 1e-13);
    CHECK((std::get<2>(got) - std::get<2>(expected)).abs().max().item<double>() < 1e-13);
    CHECK((std::get<3>(got) - std::get<3>(expected)).abs().max().item<double>() < 1e-13);
  }
}

TEST_CASE("gated_value_mix_backward: only what the mask asks for, for any strides of grad", "[ops]") {
  MixCase c;
  c.scale = Broadcast::kScalar;
  const MixInputs in = make_inputs(c, 13);
  for (int mask = 0; mask < 16; ++mask) {
    const std::array<bool, 4> wanted{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0, (mask & 8) != 0};
    const auto [first, logits, scale, shift] =
        ops::gated_value_mix_backward(in.grad, in.first_values, in.logits, c.gate, in.scale, in.shift, wanted);
    CHECK(first.defined() == wanted[0]);
    CHECK(logits.defined() == wanted[1]);
    CHECK(scale.defined() == wanted[2]);
    CHECK_FALSE(shift.defined());  // there is no shift
  }
  const at::Tensor expanded = in.grad.select(3, 0).unsqueeze(-1).expand(in.v.sizes());
  const auto strided = ops::gated_value_mix_backward(expanded, in.first_values, in.logits, c.gate, in.scale, in.shift,
                                                     {true, true, true, false});
  const auto packed = ops::gated_value_mix_backward(expanded.contiguous(), in.first_values, in.logits, c.gate, in.scale,
                                                    in.shift, {true, true, true, false});
  CHECK(at::equal(std::get<0>(strided), std::get<0>(packed)));
  CHECK(at::equal(std::get<1>(strided), std::get<1>(packed)));
  CHECK(at::equal(std::get<2>(strided), std::get<2>(packed)));
}

TEST_CASE("gated_value_mix_backward: closed gates give zeros without reading grad or first values", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    MixCase c;
    c.dtype = c.logits_dtype = dtype;
    MixInputs in = make_inputs(c, 14);
    in.logits[0][0][0] = 0.0;  // relu'(0) = 0
    const at::Tensor closed = (in.logits <= 0).unsqueeze(-1);
    const at::Tensor first = at::where(closed, at::full_like(in.first_values, nan), in.first_values);
    const at::Tensor grad = at::where(closed, at::full_like(in.grad, nan), in.grad);
    const auto [grad_first, grad_logits, grad_scale, grad_shift] = ops::gated_value_mix_backward(
        grad, first, in.logits, Gate::kRelu, in.logits.new_ones({}), {}, {true, true, true, false});
    CHECK(grad_first.isfinite().all().item<bool>());
    CHECK(grad_scale.isfinite().all().item<bool>());
    CHECK(at::where(closed, grad_first, grad_first.new_zeros({})).abs().sum().item<double>() == 0);
    CHECK(at::where(closed.squeeze(-1), grad_logits, grad_logits.new_zeros({})).abs().sum().item<double>() == 0);
    CHECK(grad_logits.abs().sum().item<double>() > 0);
  }
}

TEST_CASE("gated_value_mix: second derivatives equal the composite definition's", "[ops]") {
  for (const Gate gate : kAllGates) {
    const auto second = [gate](const Mix& mix) {
      const MixInputs x = leaves(small_double_inputs(gate, 15));
      const at::Tensor grad = x.grad.detach().requires_grad_();
      variable_list inputs = arguments(x);
      const variable_list first = torch::autograd::grad({mix(x, gate)}, inputs, {grad}, true, /*create_graph=*/true);
      at::Tensor sum = at::zeros({}, at::kDouble);
      for (const at::Tensor& g : first) sum = sum + (g * g).sum();
      inputs.push_back(grad);
      return torch::autograd::grad({sum}, inputs, {}, false, false, /*allow_unused=*/true);
    };
    const variable_list got = second(kernel), expected = second(composite);
    for (std::size_t i = 1; i < got.size(); ++i) {
      INFO("gate " << ops::gate_name(gate) << " argument " << i);
      CHECK((got[i] - expected[i]).abs().max().item<double>() < 1e-11);
    }
  }
}

}  // namespace satformer::tests
