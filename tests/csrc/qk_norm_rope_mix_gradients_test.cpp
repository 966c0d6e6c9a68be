// Gradients of qk_norm_rope_mix: the kernel against autograd through the composite definition in float64, and both
// against central differences.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/max.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "tests/catch.h"
#include "tests/csrc/qk_norm_rope_mix_support.h"

namespace satformer::tests::attention {
namespace {

using ops::Gate;
using ops::ValueMix;
using torch::autograd::variable_list;

using Forward = ops::MixOutputs (*)(const ops::MixInputs&);
constexpr std::array<bool, 5> kAll{true, true, true, true, true};

variable_list gradients(Forward forward, const ops::MixInputs& in, const ops::MixOutputs& grads,
                        bool create_graph = false) {
  const ops::MixInputs x = leaves(in);
  const ops::MixOutputs out = forward(x);
  return torch::autograd::grad({out.q, out.k, out.v}, differentiable(x), {grads.q, grads.k, grads.v},
                               /*retain_graph=*/create_graph, create_graph);
}

void check_gradients(const Case& c, std::uint64_t seed) {
  INFO(c.text());
  const Inputs x = make_inputs(c, seed);
  const ops::MixInputs d = to_double(x.in);
  const ops::MixOutputs grads = to_double(x.grads);
  const variable_list expected = gradients(ops::qk_norm_rope_mix_reference, d, grads);
  const variable_list magnitude = in_order(d, gradient_magnitudes(d, grads)), inputs = differentiable(x.in);
  const std::vector<double> ulps = gradient_ulps(x.in);

  const ops::MixGradients returned =
      ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);  // over NaN: all of it must be written
  const variable_list by_autograd = gradients(ops::qk_norm_rope_mix, x.in, x.grads);
  const variable_list by_operator = in_order(x.in, {x.targets.q, x.targets.k, x.targets.v, x.targets.logits, returned});
  REQUIRE(by_operator.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("argument " << i);
    CHECK(by_operator[i].scalar_type() == inputs[i].scalar_type());
    CHECK(worst_error(by_operator[i], expected[i], magnitude[i], c.dtype, ulps[i]) <= 1);
    CHECK(at::equal(by_autograd[i], by_operator[i]));
  }
  if (c.mix != ValueMix::kStatic) CHECK(at::equal(x.targets.v, x.grads.v));
}

Inputs small_double_inputs(ValueMix mix, Gate gate, bool norm, std::uint64_t seed) {
  Case c;
  c.sizes = {2, 2, 3, 2, 4}, c.dtype = c.logits_dtype = at::kDouble, c.mix = mix, c.gate = gate, c.norm = norm;
  c.tables_by_row = norm;
  Inputs x = make_inputs(c, seed);
  if (x.in.logits.defined()) x.in.logits = x.in.logits + 0.1 * x.in.logits.sign();  // away from relu's corner
  return x;
}

// Central differences of the sum of grads * outputs in every element of x, which the inputs hold.
at::Tensor numeric_gradient(Forward forward, const Inputs& inputs, const at::Tensor& x) {
  constexpr double kStep = 1e-5;
  const auto total = [&] {
    const ops::MixOutputs out = forward(inputs.in);
    const ops::MixOutputs& g = inputs.grads;
    return ((g.q * out.q).sum() + (g.k * out.k).sum() + (g.v * out.v).sum()).item<double>();
  };
  const at::Tensor result = at::zeros(x.sizes(), at::kDouble);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    at::Tensor element = x;  // x may be strided
    std::int64_t rest = i;
    for (std::int64_t dim = x.dim() - 1; dim >= 0; --dim) {
      element = element.narrow(dim, rest % x.size(dim), 1);
      rest /= x.size(dim);
    }
    const double centre = element.item<double>();
    const auto total_at = [&](double value) {
      element.fill_(value);
      return total();
    };
    const double above = total_at(centre + kStep), below = total_at(centre - kStep);
    element.fill_(centre);
    result.mutable_data_ptr<double>()[i] = (above - below) / (2 * kStep);
  }
  return result;
}

}  // namespace

TEST_CASE("qk_norm_rope_mix: gradients for every dtype, mix, gate, size and layout", "[ops]") {
  constexpr std::array<Sizes, 10> kShapes{{{2, 5, 4, 4, 64},
                                           {2, 3, 6, 2, 30},
                                           {1, 7, 8, 1, 16},
                                           {3, 1, 2, 2, 2},
                                           {1, 9, 3, 3, 6},
                                           {1, 3, 2, 1, 128},
                                           {0, 3, 4, 2, 8},
                                           {2, 0, 4, 2, 8},
                                           {2, 3, 4, 0, 8},
                                           {2, 131, 2, 2, 34}}};
  constexpr std::array kMemories{Memory::kSeparate, Memory::kPacked, Memory::kHeadsFirst, Memory::kExpandFirst};
  std::uint64_t seed = 1;
  for (const auto& [dtype, logits_dtype] : kDtypes) {
    for (const Sizes& sizes : kShapes) {
      for (const ValueMix mix : kAllMixes) {
        for (const Gate gate : kAllGates) {
          if (mix != ValueMix::kSelective && gate != Gate::kRelu) continue;
          Case c;
          c.sizes = sizes, c.dtype = dtype, c.logits_dtype = logits_dtype, c.mix = mix, c.gate = gate;
          c.memory = kMemories[seed % 4], c.norm = seed % 3 != 0, c.tables_by_row = seed % 5 < 2;
          check_gradients(c, seed++);
        }
      }
    }
  }
}

TEST_CASE("qk_norm_rope_mix: the composite definition and the kernel agree with central differences", "[ops]") {
  for (const bool norm : {true, false}) {
    for (const ValueMix mix : kAllMixes) {
      for (const Gate gate : kAllGates) {
        if (mix != ValueMix::kSelective && gate != Gate::kRelu) continue;
        for (const Forward forward : {&ops::qk_norm_rope_mix_reference, &ops::qk_norm_rope_mix}) {
          const Inputs x = small_double_inputs(mix, gate, norm, 11);
          const variable_list got = gradients(forward, x.in, x.grads), inputs = differentiable(x.in);
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            INFO("mix " << static_cast<int>(mix) << " gate " << ops::gate_name(gate) << " argument " << i);
            const at::Tensor expected = numeric_gradient(forward, x, inputs[i]);
            CHECK((got[i] - expected).abs().max().item<double>() < 1e-8);  // step^2 and rounding / step: about 1e-10
          }
        }
      }
    }
  }
}

TEST_CASE("qk_norm_rope_mix: second derivatives equal the composite definition's", "[ops]") {
  for (const ValueMix mix : kAllMixes) {
    const Inputs x = small_double_inputs(mix, Gate::kSoftmaxSigmoid, true, 12);
    const auto second = [&](Forward forward) {
      const ops::MixInputs in = leaves(x.in);
      const at::Tensor grad_q = x.grads.q.detach().requires_grad_();
      const ops::MixOutputs out = forward(in);
      const variable_list wanted = differentiable(in);
      const variable_list first = torch::autograd::grad({out.q, out.k, out.v}, wanted, {grad_q, x.grads.k, x.grads.v},
                                                        /*retain_graph=*/true, /*create_graph=*/true);
      at::Tensor total = at::zeros({}, at::kDouble);
      for (const at::Tensor& g : first) {
        if (g.requires_grad()) total = total + (g * g).sum();
      }
      variable_list leaves_of_total{in.q, in.k, in.q_weight, in.k_weight, grad_q};
      if (in.logits.defined()) leaves_of_total.insert(leaves_of_total.end(), {in.first_values, in.logits});
      if (in.lambda1.defined()) leaves_of_total.insert(leaves_of_total.end(), {in.v, in.first_values, in.lambda2});
      return torch::autograd::grad({total}, leaves_of_total);
    };
    const variable_list got = second(ops::qk_norm_rope_mix), expected = second(ops::qk_norm_rope_mix_reference);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("mix " << static_cast<int>(mix) << " leaf " << i);
      const double scale = 1 + expected[i].abs().max().item<double>();
      CHECK((got[i] - expected[i]).abs().max().item<double>() < 1e-12 * scale);  // two orders of the same float64 sums
    }
  }
}

TEST_CASE("qk_norm_rope_mix_backward: the operator and its composite definition agree", "[ops]") {
  for (const ValueMix mix : kAllMixes) {
    for (const Gate gate : kAllGates) {
      if (mix != ValueMix::kSelective && gate != Gate::kRelu) continue;
      const Inputs x = small_double_inputs(mix, gate, true, 13);
      const auto returned = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);
      const variable_list got = in_order(x.in, {x.targets.q, x.targets.k, x.targets.v, x.targets.logits, returned});
      const variable_list expected = in_order(x.in, ops::qk_norm_rope_mix_backward_reference(x.in, x.grads));
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("mix " << static_cast<int>(mix) << " gate " << ops::gate_name(gate) << " argument " << i);
        CHECK((got[i] - expected[i]).abs().max().item<double>() < 1e-13);
      }
    }
  }
}

TEST_CASE("qk_norm_rope_mix_backward: only what the mask asks for", "[ops]") {
  for (const ValueMix mix : kAllMixes) {
    Case c;
    c.mix = mix;
    const Inputs x = make_inputs(c, 14);
    const auto all = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);
    for (int mask = 0; mask < 32; ++mask) {
      std::array<bool, 5> wanted{};
      for (int i = 0; i < 5; ++i) wanted[i] = (mask >> i & 1) != 0;
      const auto some = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, wanted);
      const auto check = [&](const at::Tensor& got, const at::Tensor& expected, bool asked) {
        CHECK(got.defined() == (asked && expected.defined()));
        if (got.defined()) CHECK(at::equal(got, expected));
      };
      check(some.q_weight, all.q_weight, wanted[0]);
      check(some.k_weight, all.k_weight, wanted[1]);
      check(some.first_values, all.first_values, wanted[2]);
      check(some.lambda1, all.lambda1, wanted[3]);
      check(some.lambda2, all.lambda2, wanted[4]);
    }
  }
}

TEST_CASE("qk_norm_rope_mix_backward: raw inputs that it does not read may be absent", "[ops]") {
  for (const ValueMix mix : kAllMixes) {
    for (const bool norm : {true, false}) {
      Case c;
      c.mix = mix, c.norm = norm;
      Inputs x = make_inputs(c, 15);
      const auto run = [&] {
        const auto out = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);
        variable_list list = in_order(x.in, {x.targets.q, x.targets.k, x.targets.v, x.targets.logits, out});
        for (at::Tensor& tensor : list) tensor = tensor.clone();
        return list;
      };
      const variable_list expected = run();
      if (!norm) x.in.q = x.in.k = at::Tensor();
      if (mix != ValueMix::kStatic) x.in.v = at::Tensor();
      const variable_list got = run();
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(at::equal(got[i], expected[i]));
      if (mix != ValueMix::kNone) continue;
      x.targets.v.fill_(7);  // without a mix the gradient of v' may stay where it is
      x.grads.v = at::Tensor();
      const at::Tensor v = x.targets.v;
      x.targets.v = at::Tensor();
      const auto out = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);
      CHECK(at::equal(x.targets.q, expected[0]));
      CHECK(at::equal(x.targets.k, expected[1]));
      CHECK(at::equal(v, at::full_like(v, 7)));
      CHECK(out.q_weight.defined() == norm);
    }
  }
}

TEST_CASE("qk_norm_rope_mix_backward: adds the gradient of first values to a target of either dtype", "[ops]") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const ValueMix mix : {ValueMix::kSelective, ValueMix::kStatic}) {
      for (const bool wide : {false, true}) {
        Case c;
        c.dtype = dtype, c.mix = mix, c.sizes.hd = 38;
        Inputs x = make_inputs(c, 16);
        const auto alone = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);
        const at::ScalarType target_dtype = wide && dtype != at::kDouble ? at::kFloat : dtype;
        const at::Tensor before = make_inputs(c, 17).in.v.to(target_dtype);  // strided: a slice of a projection
        x.targets.first_values = at::cat({before, before}, 3).slice(3, 0, 38);
        const auto added = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);
        CHECK_FALSE(added.first_values.defined());
        CHECK(x.targets.first_values.scalar_type() == target_dtype);
        const ops::MixInputs d = to_double(x.in);
        const auto exact = ops::qk_norm_rope_mix_backward_reference(d, to_double(x.grads)).others.first_values;
        const at::Tensor sum = before.to(at::kDouble) + exact;
        CHECK(worst_error(x.targets.first_values, sum, before.to(at::kDouble).abs() + exact.abs(), dtype) <= 1);
        CHECK(alone.first_values.defined());
      }
    }
  }
}

TEST_CASE("qk_norm_rope_mix_backward: closed gates read neither first values nor their gradient's row", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    Case c;
    c.dtype = c.logits_dtype = dtype;
    Inputs x = make_inputs(c, 18);
    x.in.logits[0][0][0] = 0.0;  // relu'(0) = 0
    const at::Tensor closed = x.in.logits <= 0;
    x.in.first_values = at::where(closed.unsqueeze(-1), at::full_like(x.in.first_values, nan), x.in.first_values);
    x.grads.v = at::where(closed.unsqueeze(-1), at::full_like(x.grads.v, nan), x.grads.v);
    const auto out = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kAll);
    const at::Tensor zero = out.first_values.new_zeros({});
    CHECK(out.first_values.isfinite().all().item<bool>());
    CHECK(at::where(closed.unsqueeze(-1), out.first_values, zero).abs().sum().item<double>() == 0);
    CHECK(at::where(closed, x.targets.logits, zero).abs().sum().item<double>() == 0);
    CHECK(x.targets.logits.isfinite().all().item<bool>());
    CHECK(x.targets.logits.abs().sum().item<double>() > 0);
  }
}

}  // namespace satformer::tests::attention
