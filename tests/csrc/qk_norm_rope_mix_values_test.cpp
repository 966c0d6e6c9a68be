// Forward values of qk_norm_rope_mix: the kernel against the composite definition in float64.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include <limits>

#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/qk_norm_rope_mix.h"
#include "tests/catch.h"
#include "tests/csrc/qk_norm_rope_mix_support.h"

namespace satformer::tests::attention {
namespace {

using ops::Gate;
using ops::ValueMix;

void check_values(const Case& c, std::uint64_t seed) {
  INFO(c.text());
  const Inputs x = make_inputs(c, seed);
  const ops::MixInputs d = to_double(x.in);
  const ops::MixOutputs got = ops::qk_norm_rope_mix(x.in), expected = ops::qk_norm_rope_mix_reference(d),
                        magnitude = magnitudes(d);
  for (const at::Tensor& out : {got.q, got.k, got.v}) {
    CHECK(out.scalar_type() == c.dtype);
    CHECK(out.is_contiguous());
  }
  CHECK(worst_error(got.q, expected.q, magnitude.q, c.dtype, row_ulps(c.sizes.hd)) <= 1);
  CHECK(worst_error(got.k, expected.k, magnitude.k, c.dtype, row_ulps(c.sizes.hd)) <= 1);
  CHECK(worst_error(got.v, expected.v, magnitude.v, c.dtype) <= 1);
}

}  // namespace

TEST_CASE("qk_norm_rope_mix: values for every dtype, mix, gate, size and layout", "[ops]") {
  constexpr std::array<Sizes, 11> kShapes{{{2, 5, 4, 4, 64},
                                           {2, 3, 6, 2, 30},
                                           {1, 7, 8, 1, 16},
                                           {3, 1, 2, 2, 2},
                                           {1, 9, 3, 3, 6},
                                           {2, 2, 4, 2, 32},
                                           {1, 3, 2, 1, 128},
                                           {0, 3, 4, 2, 8},
                                           {2, 0, 4, 2, 8},
                                           {2, 3, 4, 0, 8},
                                           {1, 131, 2, 2, 34}}};
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
          check_values(c, seed++);
        }
      }
    }
  }
}

TEST_CASE("qk_norm_rope_mix: without a mix v' is v itself unless a copy is asked for", "[ops]") {
  Case c;
  c.mix = ValueMix::kNone;
  Inputs x = make_inputs(c, 2);
  CHECK(at::equal(ops::qk_norm_rope_mix(x.in).v, x.in.v));
  CHECK_FALSE(ops::qk_norm_rope_mix(x.in).v.is_alias_of(x.in.v));
  x.in.copy_values = false;
  CHECK(ops::qk_norm_rope_mix(x.in).v.is_same(x.in.v));
}

TEST_CASE("qk_norm_rope_mix: the selective mix equals gated_value_mix bit for bit", "[ops]") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const Gate gate : kAllGates) {
      Case c;
      c.dtype = c.logits_dtype = dtype, c.gate = gate;
      const Inputs x = make_inputs(c, 3);
      CHECK(
          at::equal(ops::qk_norm_rope_mix(x.in).v, ops::gated_value_mix(x.in.v, x.in.first_values, x.in.logits, gate)));
    }
  }
}

TEST_CASE("qk_norm_rope_mix: closed gates and zero lambdas do not read first values", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    Case c;
    c.dtype = dtype;
    Inputs x = make_inputs(c, 4);
    x.in.logits[0][1][1] = 0.0;
    const at::Tensor closed = (x.in.logits <= 0).unsqueeze(-1), expected = ops::qk_norm_rope_mix(x.in).v;
    x.in.first_values = at::where(closed, at::full_like(x.in.first_values, nan), x.in.first_values);
    const at::Tensor out = ops::qk_norm_rope_mix(x.in).v;
    CHECK(at::equal(out, expected));
    CHECK(at::equal(at::where(closed, out, x.in.v), x.in.v));

    c.mix = ValueMix::kStatic;
    x = make_inputs(c, 4);
    x.in.lambda1.fill_(0), x.in.lambda2.fill_(0.5);
    x.in.first_values.fill_(nan);
    CHECK(at::equal(ops::qk_norm_rope_mix(x.in).v, x.in.v * 0.5));
  }
}

TEST_CASE("qk_norm_rope_mix: NaN and infinity are not hidden", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Inputs x = make_inputs({}, 5);
  x.in.q[1][2][3][4] = nan;
  x.in.k[1][2][1][4] = std::numeric_limits<double>::infinity();
  x.in.logits[1][2][0] = nan;
  const ops::MixOutputs out = ops::qk_norm_rope_mix(x.in);
  CHECK(out.q[1][2][3].isnan().all().item<bool>());  // the whole row: its norm is NaN
  CHECK(out.k[1][2][1].isnan().any().item<bool>());
  CHECK(out.v[1][2][0].isnan().all().item<bool>());
  CHECK(out.q[1][2][2].isfinite().all().item<bool>());
}

TEST_CASE("qk_norm_rope_mix: the number of threads changes no bit", "[ops]") {
  const int threads = at::get_num_threads();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const ValueMix mix : kAllMixes) {
      Case c;
      c.sizes = {3, 257, 6, 2, 64}, c.dtype = c.logits_dtype = dtype, c.mix = mix;
      const Inputs x = make_inputs(c, 6);
      const auto run = [&](int n) {
        at::set_num_threads(n);
        const ops::MixOutputs out = ops::qk_norm_rope_mix(x.in);
        const auto returned = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, {true, true, true, true, true});
        return std::vector<at::Tensor>{out.q,
                                       out.k,
                                       out.v,
                                       x.targets.q.clone(),
                                       x.targets.k.clone(),
                                       x.targets.v.clone(),
                                       x.targets.logits.defined() ? x.targets.logits.clone() : at::Tensor(),
                                       returned.q_weight,
                                       returned.k_weight,
                                       returned.first_values,
                                       returned.lambda1,
                                       returned.lambda2};
      };
      const auto one = run(1), several = run(4);
      at::set_num_threads(threads);
      for (std::size_t i = 0; i < one.size(); ++i) {
        REQUIRE(one[i].defined() == several[i].defined());
        if (one[i].defined()) CHECK(at::equal(one[i], several[i]));
      }
    }
  }
}

}  // namespace satformer::tests::attention
