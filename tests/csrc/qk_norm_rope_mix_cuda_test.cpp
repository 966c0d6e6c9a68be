// qk_norm_rope_mix on a GPU against the composite definition on the CPU in float64.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/qk_norm_rope_mix.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/qk_norm_rope_mix_support.h"

namespace satformer::tests::attention {
namespace {

using ops::Gate;
using ops::ValueMix;

constexpr std::array<bool, 5> kWanted{true, true, true, true, true};

Inputs on_cuda(const Inputs& x) {
  Inputs out = x;
  for (at::Tensor* t :
       {&out.in.q, &out.in.k, &out.in.v, &out.in.cos, &out.in.sin, &out.in.q_weight, &out.in.k_weight,
        &out.in.first_values, &out.in.logits, &out.in.lambda1, &out.in.lambda2, &out.grads.q, &out.grads.k,
        &out.grads.v, &out.targets.q, &out.targets.k, &out.targets.v, &out.targets.logits}) {
    if (t->defined()) *t = to_cuda(*t);
  }
  return out;
}

void check_on_cuda(const Case& c, std::uint64_t seed) {
  INFO(c.text());
  const Inputs x = make_inputs(c, seed), gpu = on_cuda(x);
  const ops::MixInputs d = to_double(x.in);
  const ops::MixOutputs grads = to_double(x.grads);
  const ops::MixOutputs got = ops::qk_norm_rope_mix(gpu.in), expected = ops::qk_norm_rope_mix_reference(d),
                        magnitude = magnitudes(d);
  REQUIRE(got.q.is_cuda());
  CHECK(worst_error(got.q.cpu(), expected.q, magnitude.q, c.dtype, row_ulps(c.sizes.hd)) <= 1);
  CHECK(worst_error(got.k.cpu(), expected.k, magnitude.k, c.dtype, row_ulps(c.sizes.hd)) <= 1);
  CHECK(worst_error(got.v.cpu(), expected.v, magnitude.v, c.dtype) <= 1);

  const auto returned = ops::qk_norm_rope_mix_backward(gpu.in, gpu.grads, gpu.targets, kWanted);
  const auto got_gradients =
      in_order(gpu.in, {gpu.targets.q, gpu.targets.k, gpu.targets.v, gpu.targets.logits, returned});
  const auto expected_gradients = in_order(d, ops::qk_norm_rope_mix_backward_reference(d, grads));
  const auto gradient_magnitude = in_order(d, gradient_magnitudes(d, grads));
  const std::vector<double> ulps = gradient_ulps(x.in);
  for (std::size_t i = 0; i < got_gradients.size(); ++i) {
    INFO("gradient of argument " << i);
    CHECK(worst_error(got_gradients[i].cpu(), expected_gradients[i], gradient_magnitude[i], c.dtype, ulps[i]) <= 1);
  }
}

}  // namespace

TEST_CASE("qk_norm_rope_mix_CUDA: values and gradients for every dtype, mix, gate, size and layout", "[ops][cuda]") {
  if (!has_cuda()) return;
  constexpr std::array<Sizes, 10> kShapes{{{2, 5, 4, 4, 64},
                                           {2, 3, 6, 2, 30},
                                           {1, 7, 8, 1, 16},
                                           {3, 1, 2, 2, 2},
                                           {1, 3, 2, 1, 128},
                                           {1, 2, 2, 1, 512},
                                           {0, 3, 4, 2, 8},
                                           {2, 3, 4, 0, 8},
                                           {2, 131, 2, 2, 34},
                                           {4, 512, 8, 4, 64}}};
  constexpr std::array kMemories{Memory::kSeparate, Memory::kPacked, Memory::kHeadsFirst, Memory::kExpandFirst};
  std::uint64_t seed = 1;
  for (const auto& [dtype, logits_dtype] : kDtypes) {
    if (dtype == at::kDouble) continue;
    for (const Sizes& sizes : kShapes) {
      for (const ValueMix mix : kAllMixes) {
        for (const Gate gate : kAllGates) {
          if (mix != ValueMix::kSelective && gate != Gate::kRelu) continue;
          Case c;
          c.sizes = sizes, c.dtype = dtype, c.logits_dtype = logits_dtype, c.mix = mix, c.gate = gate;
          c.memory = kMemories[seed % 4], c.norm = seed % 3 != 0, c.tables_by_row = seed % 5 < 2;
          check_on_cuda(c, seed++);
        }
      }
    }
  }
}

TEST_CASE("qk_norm_rope_mix_CUDA: the same bits every time, with and without autograd", "[ops][cuda]") {
  if (!has_cuda()) return;
  for (const ValueMix mix : kAllMixes) {
    Case c;
    c.sizes = {4, 300, 6, 2, 64}, c.dtype = c.logits_dtype = at::kBFloat16, c.mix = mix;
    const Inputs x = on_cuda(make_inputs(c, 5));
    const auto by_operator = [&] {
      const auto returned = ops::qk_norm_rope_mix_backward(x.in, x.grads, x.targets, kWanted);
      auto list = in_order(x.in, {x.targets.q, x.targets.k, x.targets.v, x.targets.logits, returned});
      for (at::Tensor& tensor : list) tensor = tensor.clone();
      return list;
    };
    const ops::MixInputs in = leaves(x.in);
    const ops::MixOutputs out = ops::qk_norm_rope_mix(in);
    const auto by_autograd =
        torch::autograd::grad({out.q, out.k, out.v}, differentiable(in), {x.grads.q, x.grads.k, x.grads.v});
    const auto first = by_operator(), second = by_operator();
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(at::equal(first[i], second[i]));
      CHECK(at::equal(first[i], by_autograd[i]));
    }
  }
}

TEST_CASE("qk_norm_rope_mix_CUDA: adds the gradient of first values to a target of either dtype", "[ops][cuda]") {
  if (!has_cuda()) return;
  for (const at::ScalarType target_dtype : {at::kBFloat16, at::kFloat}) {
    Case c;
    c.dtype = at::kBFloat16;
    const Inputs x = make_inputs(c, 16);
    Inputs gpu = on_cuda(x);
    const at::Tensor before = make_inputs(c, 17).in.v.to(target_dtype);
    gpu.targets.first_values = before.to(at::kCUDA);
    const auto added = ops::qk_norm_rope_mix_backward(gpu.in, gpu.grads, gpu.targets, kWanted);
    CHECK_FALSE(added.first_values.defined());
    const at::Tensor exact =
        ops::qk_norm_rope_mix_backward_reference(to_double(x.in), to_double(x.grads)).others.first_values;
    CHECK(worst_error(gpu.targets.first_values.cpu(), before.to(at::kDouble) + exact,
                      before.to(at::kDouble).abs() + exact.abs(), c.dtype) <= 1);
  }
}

TEST_CASE("qk_norm_rope_mix_CUDA: a head dim beyond the kernels' is an error", "[ops][cuda]") {
  if (!has_cuda()) return;
  Case c;
  c.sizes.hd = 514;
  const Inputs x = on_cuda(make_inputs(c, 6));
  CHECK(error_of([&] { ops::qk_norm_rope_mix(x.in); }) ==
        "qk_norm_rope_mix: q must have a head dim of at most 512 on CUDA, got 514");
}

}  // namespace satformer::tests::attention
