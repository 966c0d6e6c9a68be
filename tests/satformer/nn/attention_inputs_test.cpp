// The fused pass before attention against the parts of satformer/nn that it replaces: rms_norm, apply_rotary and the
// value mixes, with the model's own rotary tables.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/attention_inputs.h"
#include "csrc/ops/gated_value_mix.h"
#include "satformer/nn/rms_norm.h"
#include "satformer/nn/rotary.h"
#include "tests/catch.h"
#include "tests/csrc/attention_inputs_support.h"

namespace satformer::tests::attention {
namespace {

using ops::ValueMix;
using torch::autograd::variable_list;

// As satformer/nn computes it, part by part; each part rounds to the values' dtype.
ops::AttentionOperands by_parts(const ops::AttentionInputs& in) {
  const nn::RotaryTables tables{in.cos, in.sin};
  const auto head = [&](const at::Tensor& x, const at::Tensor& weight) {
    return nn::apply_rotary(weight.defined() ? nn::rms_norm(x, weight, in.eps).to(x.scalar_type()) : x, tables);
  };
  ops::AttentionOperands out{head(in.q, in.q_weight), head(in.k, in.k_weight), in.v};
  if (in.logits.defined()) out.v = ops::gated_value_mix(in.v, in.first_values, in.logits, in.gate);
  if (in.lambda1.defined()) out.v = (in.lambda1 * in.first_values + in.lambda2 * in.v).to(in.v.scalar_type());
  return out;
}

Inputs with_real_tables(const Case& c) {
  Inputs x = make_inputs(c, 31);
  at::Tensor positions = at::arange(c.sizes.T, at::kLong);
  if (c.tables_by_row) positions = at::stack({positions, positions + 1000});
  const nn::RotaryTables tables =
      nn::make_rotary_tables(positions, c.sizes.hd, 1e4, c.dtype == at::kDouble ? at::kDouble : at::kFloat);
  x.in.cos = tables.cos, x.in.sin = tables.sin;
  return x;
}

variable_list gradients_of(ops::AttentionOperands (*forward)(const ops::AttentionInputs&), const Inputs& x) {
  const ops::AttentionInputs in = leaves(x.in);
  const ops::AttentionOperands out = forward(in);
  return torch::autograd::grad({out.q, out.k, out.v}, differentiable(in), {x.grads.q, x.grads.k, x.grads.v});
}

}  // namespace

TEST_CASE("attention_inputs: agrees with the parts that it replaces, values and gradients", "[ops][nn]") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const ValueMix mix : kAllMixes) {
      for (const bool norm : {true, false}) {
        Case c;
        c.sizes = {2, 37, 6, 2, 32}, c.dtype = c.logits_dtype = dtype, c.mix = mix, c.norm = norm;
        c.tables_by_row = norm;
        INFO(c.text());
        const Inputs x = with_real_tables(c);
        const ops::AttentionInputs d = to_double(x.in);
        const ops::AttentionOperands grads = to_double(x.grads);
        // The parts round up to three times more than the fused pass does.
        const double ulps = row_ulps(32) + 3 * rounding(dtype) / arithmetic_error(dtype);
        const auto agree = [&](const at::Tensor& got, const at::Tensor& parts, const at::Tensor& magnitude,
                               double more_ulps = 0) {
          CHECK(got.scalar_type() == parts.scalar_type());
          CHECK(worst_error(got, parts.to(at::kDouble), magnitude, dtype, ulps + more_ulps) <= 1);
        };
        const ops::AttentionOperands got = ops::attention_inputs(x.in), parts = by_parts(x.in), m = magnitudes(d);
        agree(got.q, parts.q, m.q);
        agree(got.k, parts.k, m.k);
        agree(got.v, parts.v, m.v);

        const variable_list got_gradients = gradients_of(ops::attention_inputs, x);
        const variable_list parts_gradients = gradients_of(by_parts, x);
        const variable_list magnitude = in_order(d, gradient_magnitudes(d, grads));
        REQUIRE(got_gradients.size() == parts_gradients.size());
        for (std::size_t i = 0; i < got_gradients.size(); ++i) {
          INFO("argument " << i);
          const double rows = 2 * 37 * 6;  // of the sums for weights and lambdas
          agree(got_gradients[i], parts_gradients[i], magnitude[i], rows);
        }
      }
    }
  }
}

}  // namespace satformer::tests::attention
