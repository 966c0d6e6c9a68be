// gated_value_mix on a GPU against the composite definition on the CPU in float64, and against the CPU's kernel.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "csrc/ops/gated_value_mix.h"
#include "csrc/ops/gated_value_mix_reference.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/gated_value_mix_support.h"

namespace satformer::tests {
namespace {

using ops::Gate;
using torch::autograd::variable_list;

MixInputs inputs_on_cuda(const MixInputs& in) {
  MixInputs out{to_cuda(in.v), to_cuda(in.first_values), to_cuda(in.logits), std::nullopt,
                std::nullopt,  to_cuda(in.grad)};
  if (in.scale) out.scale = to_cuda(*in.scale);
  if (in.shift) out.shift = to_cuda(*in.shift);
  return out;
}

// v' and the gradients of v, first_values, logits and, where given, scale and shift.
struct MixResult {
  at::Tensor out;
  variable_list gradients;
};

template <typename Mix>
MixResult mix_and_differentiate(const MixInputs& in, const Mix& mix) {
  const auto leaf = [](const at::Tensor& x) { return x.detach().requires_grad_(); };
  variable_list leaves{leaf(in.v), leaf(in.first_values), leaf(in.logits)};
  std::optional<at::Tensor> scale, shift;
  if (in.scale) leaves.push_back(*(scale = leaf(*in.scale)));
  if (in.shift) leaves.push_back(*(shift = leaf(*in.shift)));
  const at::Tensor out = mix(leaves[0], leaves[1], leaves[2], scale, shift);
  return {out.detach(), torch::autograd::grad({out}, leaves, {in.grad})};
}

MixResult operator_result(const MixInputs& in, Gate gate) {
  return mix_and_differentiate(
      in, [gate](const auto& v, const auto& first, const auto& logits, const auto& scale, const auto& shift) {
        return ops::gated_value_mix(v, first, logits, gate, scale, shift);
      });
}

MixResult reference_result(const MixInputs& in, Gate gate) {
  return mix_and_differentiate(
      in, [gate](const auto& v, const auto& first, const auto& logits, const auto& scale, const auto& shift) {
        return ops::gated_value_mix_reference(v, first, logits, gate, scale, shift);
      });
}

void check_on_cuda(const MixCase& c, std::uint64_t seed) {
  INFO(c.text());
  const MixInputs in = make_inputs(c, seed), d = to_double(in), on_cuda = inputs_on_cuda(in);
  const MixResult got = operator_result(on_cuda, c.gate), expected = reference_result(d, c.gate);
  const MixResult on_cpu = operator_result(in, c.gate);
  REQUIRE(got.out.is_cuda());
  CHECK(got.out.is_contiguous());
  CHECK(worst_error(got.out.cpu(), expected.out, mix_magnitude(d, c.gate), c.dtype) <= 1);
  // Each is within one tolerance of the truth, so they are within two of each other; seen from the CPU's result.
  CHECK(worst_error(got.out.cpu(), on_cpu.out.to(at::kDouble), mix_magnitude(d, c.gate), c.dtype) <= 2.1);

  at::Tensor v = on_cuda.v;  // keeps its strides
  ops::gated_value_mix_(v, on_cuda.first_values, on_cuda.logits, c.gate, on_cuda.scale, on_cuda.shift);
  CHECK(at::equal(v, got.out));

  // One unit for each term of a sum: over hd for d alpha', over all tokens for d scale and d shift.
  const double dot_ulps = kArithmeticUlps + static_cast<double>(c.sizes.hd);
  const double sum_ulps = dot_ulps + static_cast<double>(c.sizes.B * c.sizes.T * c.sizes.H);
  const std::vector<at::Tensor> magnitudes = gradient_magnitudes(d, c.gate);
  REQUIRE(got.gradients.size() == expected.gradients.size());
  for (std::size_t i = 0; i < got.gradients.size(); ++i) {
    INFO("gradient of argument " << i);
    const double ulps = i <= 1 ? kArithmeticUlps : i == 2 ? dot_ulps : sum_ulps;
    CHECK(got.gradients[i].is_cuda());
    CHECK(worst_error(got.gradients[i].cpu(), expected.gradients[i], magnitudes[i], c.dtype, ulps) <= 1);
  }
}

}  // namespace

TEST_CASE("gated_value_mix_CUDA: values and gradients for every dtype, gate, size and layout", "[ops][cuda]") {
  if (!has_cuda()) return;
  constexpr std::array<MixSizes, 12> kSizes{{{2, 5, 4, 64},
                                             {1, 1, 1, 1},
                                             {1, 3, 2, 3},
                                             {3, 2, 5, 7},
                                             {2, 3, 9, 16},
                                             {2, 2, 3, 37},
                                             {1, 2, 33, 128},
                                             {0, 3, 2, 8},
                                             {2, 3, 0, 8},
                                             {2, 3, 2, 0},
                                             {1, 130, 2, 257},
                                             {2, 512, 8, 96}}};
  constexpr std::array kLayouts{Layout::kContiguous, Layout::kPackedSlice, Layout::kHeadsFirst, Layout::kExpandedFirst,
                                Layout::kStridedLogits};
  std::uint64_t seed = 1;
  for (const auto& [dtype, logits_dtype] : kDtypes) {
    if (dtype == at::kDouble) continue;
    for (const Gate gate : kAllGates) {
      for (const MixSizes& sizes : kSizes) {
        MixCase c;
        c.sizes = sizes, c.dtype = dtype, c.logits_dtype = logits_dtype, c.gate = gate;
        c.layout = kLayouts[seed % kLayouts.size()];
        check_on_cuda(c, seed++);
      }
    }
  }
}

TEST_CASE("gated_value_mix_CUDA: every kind of intervention", "[ops][cuda]") {
  if (!has_cuda()) return;
  constexpr std::array kKinds{Broadcast::kNone, Broadcast::kScalar, Broadcast::kHeads, Broadcast::kTokens,
                              Broadcast::kFull};
  constexpr std::array kInterventionDtypes{at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};
  std::uint64_t seed = 1;
  for (const Gate gate : kAllGates) {
    for (const Broadcast scale : kKinds) {
      for (const Broadcast shift : kKinds) {
        MixCase c;
        c.sizes = {2, 3, 5, 17}, c.dtype = kCudaDtypes[seed % kCudaDtypes.size()], c.gate = gate;
        c.scale = scale, c.shift = shift;
        c.intervention_dtype = kInterventionDtypes[seed % kInterventionDtypes.size()];
        check_on_cuda(c, seed++);
      }
    }
  }
}

TEST_CASE("gated_value_mix_CUDA: closed gates leave v bit for bit and read neither first values nor grad",
          "[ops][cuda]") {
  if (!has_cuda()) return;
  for (const at::ScalarType dtype : kCudaDtypes) {
    MixCase c;
    c.dtype = c.logits_dtype = dtype;
    MixInputs in = inputs_on_cuda(make_inputs(c, 5));
    in.logits = -in.logits.abs();
    in.first_values.fill_(std::numeric_limits<double>::quiet_NaN());
    in.grad.fill_(std::numeric_limits<double>::quiet_NaN());
    CHECK(at::equal(ops::gated_value_mix(in.v, in.first_values, in.logits), in.v));
    const auto [first, logits, scale, shift] = ops::gated_value_mix_backward(
        in.grad, in.first_values, in.logits, Gate::kRelu, {}, {}, {true, true, false, false});
    CHECK(at::equal(first, at::zeros(first.sizes(), first.options())));
    CHECK(at::equal(logits, at::zeros(logits.sizes(), logits.options())));
  }
}

TEST_CASE("gated_value_mix_CUDA: repeated runs give the same bits", "[ops][cuda]") {
  if (!has_cuda()) return;
  MixCase c;
  c.sizes = {3, 257, 7, 64}, c.dtype = at::kBFloat16, c.scale = Broadcast::kHeads;
  for (const Gate gate : {Gate::kRelu, Gate::kSoftmaxSigmoid}) {
    const MixInputs in = inputs_on_cuda(make_inputs(c, 6));
    const MixResult first = operator_result(in, gate), second = operator_result(in, gate);
    CHECK(at::equal(first.out, second.out));
    for (std::size_t i = 0; i < first.gradients.size(); ++i) CHECK(at::equal(first.gradients[i], second.gradients[i]));
  }
}

TEST_CASE("gated_value_mix_CUDA: devices and dtypes that it refuses", "[ops][cuda]") {
  if (!has_cuda()) return;
  const MixInputs cpu = make_inputs(MixCase{}, 7), cuda = inputs_on_cuda(cpu);
  CHECK_THROWS_WITH(ops::gated_value_mix(cuda.v, cpu.first_values, cuda.logits),
                    Catch::Contains("gated_value_mix: first_values must be on cuda:0 like v, got cpu"));
  CHECK_THROWS_WITH(ops::gated_value_mix(cuda.v.to(at::kDouble), cuda.first_values.to(at::kDouble), cuda.logits),
                    Catch::Contains("(float64 on CPU alone), got Double on cuda:0"));
}

TEST_CASE("gated_value_mix_CUDA: autocast computes in bfloat16", "[ops][cuda]") {
  if (!has_cuda()) return;
  const MixInputs in = inputs_on_cuda(make_inputs(MixCase{}, 8));
  at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCUDA, true);
  const at::Tensor out = ops::gated_value_mix(in.v, in.first_values, in.logits);
  at::autocast::set_autocast_enabled(at::kCUDA, false);
  at::autocast::clear_cache();
  CHECK(out.scalar_type() == at::kBFloat16);
  CHECK(at::equal(out, ops::gated_value_mix(in.v.to(at::kBFloat16), in.first_values.to(at::kBFloat16), in.logits)));
}

}  // namespace satformer::tests
