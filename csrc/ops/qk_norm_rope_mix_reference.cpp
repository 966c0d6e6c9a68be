#include "csrc/ops/qk_norm_rope_mix_reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

#include "csrc/ops/gated_value_mix_reference.h"
#include "csrc/ops/qk_norm_rope_mix_checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

at::Tensor to_arithmetic(const at::Tensor& x) { return x.to(accumulate_dtype(x)); }

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const c10::SymInt half = cos.sym_size(-1);
  const at::Tensor x1 = x.narrow_symint(-1, 0, half), x2 = x.narrow_symint(-1, half, half);
  return at::cat({x1 * cos - x2 * sin, x2 * cos + x1 * sin}, -1);
}

// 1 / sqrt(mean(x^2) + eps), a number a row.
at::Tensor inverse_rms(const at::Tensor& x, double eps) { return at::rsqrt((x * x).mean(-1, true) + eps); }

at::Tensor norm_and_rotate(const at::Tensor& input, const at::Tensor& weight, const MixInputs& in) {
  at::Tensor x = to_arithmetic(input);
  if (weight.defined()) x = x * inverse_rms(x, in.eps) * weight;
  return rotate(x, in.cos, in.sin).to(input.scalar_type());
}

struct HeadGradients {
  at::Tensor x, weight;
};

// With r = 1 / sqrt(mean(x^2) + eps), n = x r and g the gradient, rotated back:
//   d weight = sum over rows of g n,   dx = r (g weight - n mean(g n weight))
HeadGradients head_gradients(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
                             const MixInputs& in) {
  const at::Tensor g = rotate(to_arithmetic(grad), in.cos, -in.sin);
  if (!weight.defined()) return {g.to(grad.scalar_type()), {}};
  const at::Tensor x = to_arithmetic(input), r = inverse_rms(x, in.eps), n = x * r, gw = g * weight;
  return {(r * (gw - n * (gw * n).mean(-1, true))).to(input.scalar_type()), (g * n).sum(at::IntArrayRef{0, 1, 2})};
}

void value_gradients(AllMixGradients& out, const MixInputs& in, const at::Tensor& grad) {
  if (!grad.defined()) return;
  if (value_mix(in) == ValueMix::kStatic) {
    const at::Tensor g = to_arithmetic(grad);
    out.v = (in.lambda2 * g).to(grad.scalar_type());
    out.others.first_values = (in.lambda1 * g).to(grad.scalar_type());
    out.others.lambda1 = (g * to_arithmetic(in.first_values)).sum();
    out.others.lambda2 = (g * to_arithmetic(in.v)).sum();
    return;
  }
  out.v = grad;
  if (value_mix(in) == ValueMix::kNone) return;
  auto [first_values, logits, scale, shift] =
      gated_value_mix_backward_reference(grad, in.first_values, in.logits, in.gate, {}, {}, {true, true, false, false});
  out.others.first_values = first_values;
  out.logits = logits;
}

}  // namespace

MixOutputs qk_norm_rope_mix_reference(const MixInputs& in) {
  MixOutputs out{norm_and_rotate(in.q, in.q_weight, in), norm_and_rotate(in.k, in.k_weight, in), in.v};
  switch (value_mix(in)) {
    case ValueMix::kNone:
      break;
    case ValueMix::kSelective:
      out.v = gated_value_mix_reference(in.v, in.first_values, in.logits, in.gate);
      break;
    case ValueMix::kStatic:
      out.v = (in.lambda1 * to_arithmetic(in.first_values) + in.lambda2 * to_arithmetic(in.v)).to(in.v.scalar_type());
      break;
  }
  return out;
}

AllMixGradients qk_norm_rope_mix_backward_reference(const MixInputs& in, const MixOutputs& grads) {
  const HeadGradients q = head_gradients(grads.q, in.q, in.q_weight, in);
  const HeadGradients k = head_gradients(grads.k, in.k, in.k_weight, in);
  AllMixGradients out;
  out.q = q.x, out.k = k.x;
  out.others.q_weight = q.weight, out.others.k_weight = k.weight;
  value_gradients(out, in, grads.v);
  return out;
}

}  // namespace satformer::ops
