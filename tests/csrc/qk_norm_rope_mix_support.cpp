#include "tests/csrc/qk_norm_rope_mix_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <limits>

#include "csrc/ops/gated_value_mix_reference.h"

namespace satformer::tests::attention {
namespace {

using ops::ValueMix;

// q, k, v [B, T, heads, hd] and logits [B, T, H_kv] laid out as the case says; `fill` makes a tensor of a shape.
template <typename Fill>
std::array<at::Tensor, 4> make_projection(const Case& c, const Fill& fill) {
  const auto [B, T, H, H_kv, hd] = c.sizes;
  if (c.memory == Memory::kPacked) {
    const at::Tensor packed = fill({B, T, (H + 2 * H_kv) * hd + H_kv});
    const std::int64_t k = H * hd, v = k + H_kv * hd, logits = v + H_kv * hd;
    const auto heads = [&](std::int64_t begin, std::int64_t n) {
      return packed.slice(2, begin, begin + n * hd).view({B, T, n, hd});
    };
    return {heads(0, H), heads(k, H_kv), heads(v, H_kv), packed.slice(2, logits)};
  }
  const bool heads_first = c.memory == Memory::kHeadsFirst;
  const auto heads = [&](std::int64_t n) {
    return heads_first ? fill({B, n, T, hd}).transpose(1, 2) : fill({B, T, n, hd});
  };
  const at::Tensor logits = heads_first ? fill({B, H_kv, T}).transpose(1, 2) : fill({B, T, H_kv});
  return {heads(H), heads(H_kv), heads(H_kv), logits};
}

// x -> (|x1 cos| + |x2 sin|, |x2 cos| + |x1 sin|), also the magnitudes of the rotation back.
at::Tensor rotate_magnitude(const at::Tensor& x, const ops::MixInputs& d) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor x1 = x.narrow(-1, 0, half).abs(), x2 = x.narrow(-1, half, half).abs();
  const at::Tensor cos = d.cos.abs(), sin = d.sin.abs();
  return at::cat({x1 * cos + x2 * sin, x2 * cos + x1 * sin}, -1);
}

at::Tensor inverse_rms(const at::Tensor& x, double eps) { return at::rsqrt((x * x).mean(-1, true) + eps); }

at::Tensor head_magnitude(const at::Tensor& x, const at::Tensor& weight, const ops::MixInputs& d) {
  return rotate_magnitude(weight.defined() ? x * inverse_rms(x, d.eps) * weight : x, d);
}

std::pair<at::Tensor, at::Tensor> head_gradient_magnitude(const at::Tensor& grad, const at::Tensor& x,
                                                          const at::Tensor& weight, const ops::MixInputs& d) {
  const at::Tensor g = rotate_magnitude(grad, d);
  if (!weight.defined()) return {g, {}};
  const at::Tensor r = inverse_rms(x, d.eps), n = (x * r).abs(), gw = g * weight.abs();
  return {r * (gw + n * (gw * n).mean(-1, true)), (g * n).sum(at::IntArrayRef{0, 1, 2})};
}

at::Tensor logits_magnitude(const ops::MixInputs& d, const at::Tensor& grad) {
  const at::Tensor dot = (grad * d.first_values).abs().sum(-1);
  const bool over_heads = d.gate == ops::Gate::kSoftmax || d.gate == ops::Gate::kSoftmaxSigmoid;
  if (!over_heads || dot.numel() == 0) return dot;
  return (1 + ops::apply_gate(d.logits, ops::Gate::kSoftmax)) * (dot + std::get<0>(dot.max(-1, /*keepdim=*/true)));
}

}  // namespace

std::string Case::text() const {
  return fmt::format("B {} T {} H {} H_kv {} hd {} {} logits {} mix {} gate {} memory {} norm {} tables_by_row {}",
                     sizes.B, sizes.T, sizes.H, sizes.H_kv, sizes.hd, c10::toString(dtype), c10::toString(logits_dtype),
                     static_cast<int>(mix), ops::gate_name(gate), static_cast<int>(memory), norm, tables_by_row);
}

Inputs make_inputs(const Case& c, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto [B, T, H, H_kv, hd] = c.sizes;
  const at::ScalarType arithmetic = at::toOpMathType(c.dtype);
  const auto values = [&](const std::vector<std::int64_t>& shape) { return at::randn(shape, generator).to(c.dtype); };
  const auto numbers = [&](const std::vector<std::int64_t>& shape) {
    return at::randn(shape, generator).to(arithmetic);
  };
  Inputs x;
  ops::MixInputs& in = x.in;
  const auto [q, k, v, logits] = make_projection(c, values);
  in.q = q, in.k = k, in.v = v;
  const at::Tensor angles = (c.tables_by_row ? numbers({B, T, 1, hd / 2}) : numbers({T, 1, hd / 2})) * 3;
  in.cos = angles.cos(), in.sin = angles.sin();
  if (c.norm) in.q_weight = 1 + 0.3 * numbers({hd}), in.k_weight = 1 + 0.3 * numbers({hd});
  in.copy_values = true;
  in.gate = c.gate;
  if (c.mix != ValueMix::kNone) {
    in.first_values = make_projection(c, values)[2];
    if (c.memory == Memory::kExpandFirst) in.first_values = values({1, 1, H_kv, hd}).expand({B, T, H_kv, hd});
  }
  if (c.mix == ValueMix::kSelective) in.logits = c.logits_dtype == c.dtype ? logits : logits.to(c.logits_dtype);
  if (c.mix == ValueMix::kStatic) in.lambda1 = numbers({}), in.lambda2 = numbers({});

  const auto grad = [&](std::int64_t n) { return values({B, n, T, hd}).transpose(1, 2); };
  x.grads = {grad(H), grad(H_kv), grad(H_kv)};
  const auto [to_q, to_k, to_v, to_logits] = make_projection(c, [&](const std::vector<std::int64_t>& shape) {
    return at::empty(shape, c.dtype).fill_(std::numeric_limits<double>::quiet_NaN());
  });
  x.targets.q = to_q, x.targets.k = to_k, x.targets.v = to_v;
  if (in.logits.defined()) x.targets.logits = c.logits_dtype == c.dtype ? to_logits : to_logits.to(c.logits_dtype);
  return x;
}

std::vector<at::Tensor> differentiable(const ops::MixInputs& in) {
  ops::MixInputs without_tables = in;
  without_tables.cos = without_tables.sin = at::Tensor();
  return ops::tensors_of(without_tables);
}

ops::MixInputs leaves(const ops::MixInputs& in) {
  ops::MixInputs out = tests::leaves(in);
  out.cos = in.cos, out.sin = in.sin;
  return out;
}

std::vector<at::Tensor> in_order(const ops::MixInputs& in, const ops::AllMixGradients& gradients) {
  std::vector<at::Tensor> list{gradients.q, gradients.k, gradients.v};
  const ops::MixGradients& o = gradients.others;
  if (in.q_weight.defined()) list.insert(list.end(), {o.q_weight, o.k_weight});
  if (in.first_values.defined()) list.push_back(o.first_values);
  if (in.logits.defined()) list.push_back(gradients.logits);
  if (in.lambda1.defined()) list.insert(list.end(), {o.lambda1, o.lambda2});
  return list;
}

ops::MixOutputs magnitudes(const ops::MixInputs& d) {
  ops::MixOutputs m{head_magnitude(d.q, d.q_weight, d), head_magnitude(d.k, d.k_weight, d), d.v.abs()};
  if (d.logits.defined()) {
    m.v = d.v.abs() + ops::apply_gate(d.logits, d.gate).abs().unsqueeze(-1) * d.first_values.abs();
  } else if (d.lambda1.defined()) {
    m.v = (d.lambda1 * d.first_values).abs() + (d.lambda2 * d.v).abs();
  }
  return m;
}

ops::AllMixGradients gradient_magnitudes(const ops::MixInputs& d, const ops::MixOutputs& grads) {
  ops::AllMixGradients m;
  std::tie(m.q, m.others.q_weight) = head_gradient_magnitude(grads.q, d.q, d.q_weight, d);
  std::tie(m.k, m.others.k_weight) = head_gradient_magnitude(grads.k, d.k, d.k_weight, d);
  m.v = grads.v.abs();
  if (d.logits.defined()) {
    m.others.first_values = (ops::apply_gate(d.logits, d.gate).unsqueeze(-1) * grads.v).abs();
    m.logits = logits_magnitude(d, grads.v);
  } else if (d.lambda1.defined()) {
    m.v = (d.lambda2 * grads.v).abs();
    m.others.first_values = (d.lambda1 * grads.v).abs();
    m.others.lambda1 = (grads.v * d.first_values).abs().sum();
    m.others.lambda2 = (grads.v * d.v).abs().sum();
  }
  return m;
}

std::vector<double> gradient_ulps(const ops::MixInputs& in) {
  const double row = row_ulps(in.q.size(3)), tokens = static_cast<double>(in.q.size(0) * in.q.size(1));
  std::vector<double> list{row, row, kArithmeticUlps};
  if (in.q_weight.defined()) {
    list.push_back(row + tokens * static_cast<double>(in.q.size(2)));
    list.push_back(row + tokens * static_cast<double>(in.k.size(2)));
  }
  if (in.first_values.defined()) list.push_back(kArithmeticUlps);
  if (in.logits.defined()) list.push_back(row);
  if (in.lambda1.defined()) list.insert(list.end(), 2, row + tokens * static_cast<double>(in.k.size(2)));
  return list;
}

}  // namespace satformer::tests::attention
