#include "tests/csrc/hyper_connection_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <fmt/format.h>

#include "tests/csrc/dense_support.h"

namespace satformer::tests {

std::string HyperCase::text() const {
  return fmt::format("[{}, {}, {}, {}] {} parameters {} dynamic {} layer_norm {} tanh {} expanded {}", B, T, n, d,
                     c10::toString(dtype), c10::toString(parameters_dtype), dynamic, layer_norm, use_tanh, expanded);
}

HyperInputs make_hyper(const HyperCase& c, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto normal = [&](const std::vector<std::int64_t>& shape) { return at::randn(shape, generator); };
  const auto parameter = [&](const std::vector<std::int64_t>& shape) { return normal(shape).to(c.parameters_dtype); };
  HyperInputs in;
  in.streams = c.expanded ? normal({c.B, c.T, 1, c.d}).to(c.dtype).expand({c.B, c.T, c.n, c.d})
                          : normal({c.B, c.T, c.n, c.d}).to(c.dtype);
  ops::HyperConnection& p = in.parameters;
  p.static_alpha = parameter({c.n, c.n + 1});
  p.static_beta = parameter({c.n});
  p.norm_eps = 1e-3;
  p.use_tanh = c.use_tanh;
  if (c.dynamic) {
    p.norm_weight = parameter({c.d});
    if (c.layer_norm) p.norm_bias = parameter({c.d});
    const double size = 1 / std::sqrt(static_cast<double>(c.d + 1));
    p.dynamic_alpha_proj = (normal({c.d, c.n + 1}) * size).to(c.parameters_dtype);
    p.dynamic_beta_proj = (normal({c.d}) * size).to(c.parameters_dtype);
    p.dynamic_alpha_scale = parameter({1});
    p.dynamic_beta_scale = parameter({1});
  }
  in.grad_input = normal({c.B, c.T, c.d}).to(c.dtype);
  in.grad_mixed = normal({c.B, c.T, c.n, c.d}).to(c.dtype);
  in.grad_beta = normal({c.B, c.T, c.n}).to(at::toOpMathType(c.dtype));
  return in;
}

namespace {

// Applies `change` to every tensor of flattened().
template <typename Change>
void for_each_input(HyperInputs& in, const Change& change) {
  ops::HyperConnection& p = in.parameters;
  in.streams = change(in.streams);
  p.static_alpha = change(p.static_alpha);
  p.static_beta = change(p.static_beta);
  for (auto* x : {&p.norm_weight, &p.norm_bias, &p.dynamic_alpha_proj, &p.dynamic_beta_proj, &p.dynamic_alpha_scale,
                  &p.dynamic_beta_scale}) {
    if (*x) *x = change(**x);
  }
}

}  // namespace

HyperInputs to_double(const HyperInputs& in) {
  HyperInputs out = in;
  for_each_input(out, [](const at::Tensor& x) { return x.to(at::kDouble); });
  for (at::Tensor* x : {&out.grad_input, &out.grad_mixed, &out.grad_beta}) *x = x->to(at::kDouble);
  return out;
}

HyperInputs leaves(const HyperInputs& in) {
  HyperInputs out = in;
  for_each_input(out, [](const at::Tensor& x) { return leaf(x); });
  return out;
}

std::vector<at::Tensor> flattened(const HyperInputs& in) {
  HyperInputs copy = in;
  std::vector<at::Tensor> result;
  for_each_input(copy, [&](const at::Tensor& x) {
    result.push_back(x);
    return x;
  });
  return result;
}

// With z = x^ P the logits, of magnitude m_z, f' <= 1 and |f''| <= 2:  A and beta, of magnitude m_A;  the gradients of
// z, of magnitude g = |scale| |d A| (1 + 2 m_z);  from them the streams', the norm's and the projections'.
HyperMagnitudes hyper_magnitudes(const HyperInputs& in) {
  const ops::HyperConnection& p = in.parameters;
  const std::int64_t n = in.streams.size(2);
  const bool dynamic = p.norm_weight.has_value();
  const auto mean = [](const at::Tensor& x) { return x.mean(-1, /*keepdim=*/true); };
  const at::Tensor h = in.streams.abs();
  const at::Tensor to_m = at::cat({in.grad_input.unsqueeze(2), in.grad_mixed}, 2).abs();  // [B, T, n+1, d]
  const at::Tensor to_alpha = at::matmul(h, to_m.transpose(-2, -1)), to_beta = in.grad_beta.abs().unsqueeze(-1);
  at::Tensor coefficients = at::cat({p.static_alpha, p.static_beta.unsqueeze(-1)}, 1).abs();  // [n, n+2]
  at::Tensor m_z, x, r, q, projections, scales, f;
  if (dynamic) {
    const at::Tensor centred = p.norm_bias ? in.streams - mean(in.streams) : in.streams;
    r = at::rsqrt(mean(centred * centred) + p.norm_eps);
    x = r * (p.norm_bias ? h + mean(h) : h);
    projections = at::cat({p.dynamic_alpha_proj->t(), p.dynamic_beta_proj->unsqueeze(0)}).abs();  // [n+2, d]
    q = projections * p.norm_weight->abs();
    m_z = at::matmul(x, q.t());
    if (p.norm_bias) m_z = m_z + (projections * p.norm_bias->abs()).sum(-1);
    scales = at::cat({p.dynamic_alpha_scale->expand({n + 1}), *p.dynamic_beta_scale}).abs();
    f = p.use_tanh ? 1 + m_z : m_z;
    coefficients = coefficients + scales * f;
  }
  HyperMagnitudes out;
  const at::Tensor m = at::matmul(coefficients.slice(-1, 0, n + 1).transpose(-2, -1), h);
  out.outputs = {m.select(2, 0), m.slice(2, 1), coefficients.select(-1, n + 1).expand_as(in.grad_beta)};

  at::Tensor to_streams = at::matmul(coefficients.slice(-1, 0, n + 1), to_m);
  const std::vector<at::Tensor> fixed{to_alpha.sum(at::IntArrayRef({0, 1})),
                                      to_beta.squeeze(-1).sum(at::IntArrayRef({0, 1}))};
  if (!dynamic) {
    out.gradients = {to_streams, fixed[0], fixed[1]};
    return out;
  }
  const at::Tensor to_coefficients = at::cat({to_alpha, to_beta}, -1);  // [B, T, n, n+2]
  const at::Tensor g = scales * to_coefficients * (1 + 2 * m_z);
  at::Tensor u = at::matmul(g, q);
  if (p.norm_bias) u = u + mean(u);
  to_streams = to_streams + r * (u + x * mean(u * x));
  const at::Tensor sums = at::matmul(g.transpose(-2, -1), x).sum(at::IntArrayRef({0, 1})),
                   logits = g.sum(at::IntArrayRef({0, 1, 2})).unsqueeze(-1);
  out.gradients = {to_streams, fixed[0], fixed[1], (projections * sums).sum(0)};
  at::Tensor to_projections = sums * p.norm_weight->abs();
  if (p.norm_bias) {
    out.gradients.push_back((projections * logits).sum(0));
    to_projections = to_projections + logits * p.norm_bias->abs();
  }
  const at::Tensor to_scales = (to_coefficients * f).sum(at::IntArrayRef({0, 1, 2}));
  out.gradients.push_back(to_projections.slice(0, 0, n + 1).t());
  out.gradients.push_back(to_projections.select(0, n + 1));
  out.gradients.push_back(to_scales.slice(0, 0, n + 1).sum(0, /*keepdim=*/true));
  out.gradients.push_back(to_scales.slice(0, n + 1));
  return out;
}

}  // namespace satformer::tests
