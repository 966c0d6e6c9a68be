// Forward values of gated_value_mix: the kernel against the composite definition in float64.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/gated_value_mix_reference.h"
#include "tests/catch.h"
#include "tests/csrc/gated_value_mix_support.h"

namespace satformer::tests {
namespace {

using ops::Gate;

void check_values(const MixCase& c, std::uint64_t seed) {
  INFO(c.text());
  const MixInputs in = make_inputs(c, seed), d = to_double(in);
  const at::Tensor out = ops::gated_value_mix(in.v, in.first_values, in.logits, c.gate, in.scale, in.shift);
  const at::Tensor expected = ops::gated_value_mix_reference(d.v, d.first_values, d.logits, c.gate, d.scale, d.shift);
  REQUIRE(out.scalar_type() == c.dtype);
  REQUIRE(out.is_contiguous());
  CHECK(worst_error(out, expected, mix_magnitude(d, c.gate), c.dtype) <= 1);

  at::Tensor v = in.v;  // keeps its strides
  ops::gated_value_mix_(v, in.first_values, in.logits, c.gate, in.scale, in.shift);
  CHECK(at::equal(v, out));
}

constexpr std::array<MixSizes, 14> kSizes{{{2, 5, 4, 64},
                                           {1, 1, 1, 1},
                                           {1, 3, 2, 3},
                                           {3, 2, 5, 7},
                                           {2, 3, 9, 16},
                                           {1, 4, 12, 32},
                                           {2, 2, 3, 37},
                                           {2, 7, 3, 128},
                                           {1, 2, 33, 65},
                                           {0, 3, 2, 8},
                                           {2, 0, 2, 8},
                                           {2, 3, 0, 8},
                                           {2, 3, 2, 0},
                                           {1, 130, 2, 257}}};
constexpr std::array<Layout, 5> kLayouts{Layout::kContiguous, Layout::kPackedSlice, Layout::kHeadsFirst,
                                         Layout::kExpandedFirst, Layout::kStridedLogits};

}  // namespace

TEST_CASE("gated_value_mix: values for every dtype, gate, size and layout", "[ops]") {
  std::uint64_t seed = 1;
  for (const auto& [dtype, logits_dtype] : kDtypes) {
    for (const Gate gate : kAllGates) {
      for (const MixSizes& sizes : kSizes) {
        for (const Layout layout : kLayouts) {
          MixCase c;
          c.sizes = sizes, c.dtype = dtype, c.logits_dtype = logits_dtype, c.gate = gate, c.layout = layout;
          check_values(c, seed++);
        }
      }
    }
  }
}

TEST_CASE("gated_value_mix: values under every kind of intervention", "[ops]") {
  std::uint64_t seed = 1;
  constexpr std::array kKinds{Broadcast::kNone, Broadcast::kScalar, Broadcast::kHeads, Broadcast::kTokens,
                              Broadcast::kFull};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const at::ScalarType intervention_dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
      for (const Gate gate : kAllGates) {
        for (const Broadcast scale : kKinds) {
          for (const Broadcast shift : kKinds) {
            MixCase c;
            c.sizes = {2, 3, 5, 17}, c.dtype = dtype, c.logits_dtype = at::kFloat, c.gate = gate;
            c.scale = scale, c.shift = shift, c.intervention_dtype = intervention_dtype;
            check_values(c, seed++);
          }
        }
      }
    }
  }
}

TEST_CASE("gated_value_mix: the interventions zeroing and mean replacement", "[ops]") {
  MixCase c;
  c.dtype = at::kBFloat16;
  const MixInputs in = make_inputs(c, 3);
  const at::Tensor zero = at::scalar_tensor(0.0), half = at::scalar_tensor(0.5);
  CHECK(at::equal(ops::gated_value_mix(in.v, in.first_values, in.logits, c.gate, zero), in.v));
  const at::Tensor replaced = ops::gated_value_mix(in.v, in.first_values, in.logits, c.gate, zero, half);
  const at::Tensor expected = (in.v.to(at::kFloat) + 0.5 * in.first_values.to(at::kFloat)).to(at::kBFloat16);
  CHECK(at::equal(replaced, expected));
}

TEST_CASE("gated_value_mix: a closed gate leaves v as it is and does not read first values", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    for (const std::int64_t hd : {1, 5, 64}) {
      MixCase c;
      c.sizes = {2, 4, 3, hd}, c.dtype = dtype, c.logits_dtype = at::kFloat;
      MixInputs in = make_inputs(c, 5);
      in.logits[0][1][2] = 0.0;
      const at::Tensor closed = (in.logits <= 0).unsqueeze(-1);
      const at::Tensor poisoned = at::where(closed, at::full_like(in.first_values, nan), in.first_values);
      const at::Tensor out = ops::gated_value_mix(in.v, poisoned, in.logits);
      CHECK(at::equal(out, ops::gated_value_mix(in.v, in.first_values, in.logits)));
      CHECK(at::equal(at::where(closed, out, in.v), in.v));
    }
  }
}

TEST_CASE("gated_value_mix: NaN logits and infinite first values are not hidden", "[ops]") {
  MixCase c;
  c.sizes = {1, 1, 2, 3};
  for (const Gate gate : kAllGates) {
    MixInputs in = make_inputs(c, 6);
    in.logits[0][0][0] = std::numeric_limits<double>::quiet_NaN();
    CHECK(ops::gated_value_mix(in.v, in.first_values, in.logits, gate)[0][0][0].isnan().all().item<bool>());
  }
  MixInputs in = make_inputs(c, 6);
  in.logits.fill_(1.0);
  in.first_values[0][0][1][2] = std::numeric_limits<double>::infinity();
  CHECK(ops::gated_value_mix(in.v, in.first_values, in.logits)[0][0][1][2].isinf().item<bool>());
}

TEST_CASE("gated_value_mix: extreme logits saturate the gates", "[ops]") {
  for (const Gate gate : {Gate::kSigmoid, Gate::kTanh, Gate::kSoftmax, Gate::kSoftmaxSigmoid}) {
    const at::Tensor v = at::randn({1, 2, 2, 8}), first = at::randn({1, 2, 2, 8});
    at::Tensor logits = at::full({1, 2, 2}, 1000.0);
    logits.select(2, 1).fill_(-1000.0);
    const at::Tensor expected =
        ops::gated_value_mix_reference(v.to(at::kDouble), first.to(at::kDouble), logits.to(at::kDouble), gate);
    const at::Tensor out = ops::gated_value_mix(v, first, logits, gate);
    CHECK(worst_error(out, expected, v.abs() + 2 * first.abs(), at::kFloat) <= 1);
  }
}

TEST_CASE("gated_value_mix: the number of threads changes no bit", "[ops]") {
  const int threads = at::get_num_threads();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const Gate gate : {Gate::kRelu, Gate::kSoftmaxSigmoid}) {
      MixCase c;
      c.sizes = {3, 257, 7, 64}, c.dtype = dtype, c.gate = gate;
      const MixInputs in = make_inputs(c, 8);
      const auto run = [&](int n) {
        at::set_num_threads(n);
        return std::tuple_cat(std::tuple(ops::gated_value_mix(in.v, in.first_values, in.logits, gate)),
                              ops::gated_value_mix_backward(in.grad, in.first_values, in.logits, gate, {}, {},
                                                            {true, true, false, false}));
      };
      const auto one = run(1), several = run(4);
      CHECK(at::equal(std::get<0>(one), std::get<0>(several)));
      CHECK(at::equal(std::get<1>(one), std::get<1>(several)));
      CHECK(at::equal(std::get<2>(one), std::get<2>(several)));
    }
  }
  at::set_num_threads(threads);
}

TEST_CASE("apply_gate: float32 for low precision logits, softmax over the heads", "[ops]") {
  const at::Tensor logits = at::randn({2, 3, 4}).to(at::kBFloat16);
  for (const Gate gate : kAllGates) {
    CHECK(ops::apply_gate(logits, gate).scalar_type() == at::kFloat);
    CHECK(ops::apply_gate(logits.to(at::kDouble), gate).scalar_type() == at::kDouble);
  }
  const at::Tensor means = ops::apply_gate(logits, Gate::kSoftmax).mean(-1);
  CHECK((means - 1).abs().max().item<double>() < 1e-6);
  CHECK(ops::apply_gate(at::full({1, 1, 2}, -1.0), Gate::kRelu).sum().item<double>() == 0);
}

}  // namespace satformer::tests
