#include "tests/csrc/hyper_connection_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/hyper_connection_reference.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/dense_support.h"
#include "tests/support/tolerances.h"

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

template <typename Change>
HyperInputs changed(const HyperInputs& in, const Change& change) {
  HyperInputs out = ops::map_tensors(in, change);
  for (at::Tensor* x : {&out.grad_input, &out.grad_mixed, &out.grad_beta}) *x = change(*x);
  return out;
}

}  // namespace

HyperInputs to_double(const HyperInputs& in) {
  return changed(in, [](const at::Tensor& x) { return x.to(at::kDouble); });
}

HyperInputs on(at::Device device, const HyperInputs& in) {
  return changed(in, [&](const at::Tensor& x) { return on(device, x); });
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

void check_hyper_read(const HyperCase& c, std::uint64_t seed, at::Device device) {
  INFO(c.text());
  const HyperInputs in = make_hyper(c, seed), d = to_double(in);
  const HyperInputs x = leaves(on(device, in)), expected_x = leaves(d);
  const auto got = ops::hyper_connection_read(x.streams, x.parameters);
  const auto expected = ops::hyper_connection_read_reference(expected_x.streams, expected_x.parameters);
  const HyperMagnitudes magnitudes = hyper_magnitudes(d);
  // One u for each term of a sum: d columns and n + 2 coefficients, and all tokens for the parameters.
  const double ulps = kArithmeticUlps + static_cast<double>(c.d + 2 * c.n + 4);
  const double sum_ulps = ulps + static_cast<double>(c.B * c.T * c.n);
  CHECK(worst_error(got.input, expected.input, magnitudes.outputs[0], c.dtype, ulps) <= 1);
  CHECK(worst_error(got.mixed, expected.mixed, magnitudes.outputs[1], c.dtype, ulps) <= 1);
  CHECK(worst_error(got.beta, expected.beta, magnitudes.outputs[2], c.dtype, ulps) <= 1);
  CHECK(got.input.device().type() == device.type());
  CHECK(got.input.scalar_type() == c.dtype);
  CHECK(got.mixed.is_contiguous());

  const std::vector<at::Tensor> inputs = ops::tensors_of(x);
  const std::vector<at::Tensor> got_grads =
      torch::autograd::grad({got.input, got.mixed, got.beta}, inputs,
                            on(device, std::vector<at::Tensor>{in.grad_input, in.grad_mixed, in.grad_beta}));
  const std::vector<at::Tensor> expected_grads =
      torch::autograd::grad({expected.input, expected.mixed, expected.beta}, ops::tensors_of(expected_x),
                            {d.grad_input, d.grad_mixed, d.grad_beta});
  REQUIRE(magnitudes.gradients.size() == inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    INFO("gradient " << i << " of shape " << inputs[i].sizes());
    CHECK(got_grads[i].scalar_type() == inputs[i].scalar_type());
    CHECK(worst_error(got_grads[i], expected_grads[i], magnitudes.gradients[i], c.dtype, i == 0 ? ulps : sum_ulps) <=
          1);
  }
}

namespace {

struct WriteInputs {
  at::Tensor mixed, beta, out, grad;
};

WriteInputs make_write(const HyperCase& c, at::ScalarType out_dtype) {
  return {at::randn({c.B, c.T, c.n, c.d}).to(c.dtype), at::randn({c.B, c.T, c.n}).to(c.parameters_dtype),
          at::randn({c.B, c.T, c.d}).to(out_dtype), at::randn({c.B, c.T, c.n, c.d}).to(c.dtype)};
}

}  // namespace

void check_hyper_write(const HyperCase& c, at::ScalarType out_dtype, at::Device device) {
  INFO(c.text() << " out " << c10::toString(out_dtype));
  const WriteInputs in = make_write(c, out_dtype);
  const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
  // out is rounded to the streams' dtype before it is added.
  const at::Tensor rounded_out = wide(in.out.to(c.dtype));
  const std::vector<at::Tensor> x{leaf(on(device, in.mixed)), leaf(on(device, in.beta)), leaf(on(device, in.out))},
      d{leaf(wide(in.mixed)), leaf(wide(in.beta)), leaf(rounded_out)};
  const at::Tensor expected = ops::hyper_connection_write_reference(d[0], d[1], d[2]);
  const std::vector<at::Tensor> expected_grads = torch::autograd::grad({expected}, d, {wide(in.grad)});
  const at::Tensor b = wide(in.beta).abs(), g = wide(in.grad).abs();
  const at::Tensor magnitude = wide(in.mixed).abs() + b.unsqueeze(-1) * rounded_out.abs().unsqueeze(2);
  const std::vector<at::Tensor> magnitudes{g, (g * rounded_out.abs().unsqueeze(2)).sum(-1),
                                           (g * b.unsqueeze(-1)).sum(2)};
  const double ulps = kArithmeticUlps + static_cast<double>(c.d + c.n);
  const at::Tensor grad = on(device, in.grad);
  for (const bool in_place : {false, true}) {
    at::Tensor mixed = x[0] * 1;  // a leaf may not be overwritten
    const at::Tensor got =
        in_place ? ops::hyper_connection_write_(mixed, x[1], x[2]) : ops::hyper_connection_write(mixed, x[1], x[2]);
    CHECK(got.scalar_type() == c.dtype);
    CHECK(worst_error(got, expected, magnitude, c.dtype, ulps) <= 1);
    const std::vector<at::Tensor> got_grads = torch::autograd::grad({got}, x, {grad});
    CHECK(at::equal(got_grads[0], grad));
    for (std::size_t i = 1; i < x.size(); ++i) {
      CHECK(got_grads[i].scalar_type() == x[i].scalar_type());
      // d out is rounded twice where out has another dtype: to the streams', then to its own.
      const double twice = i == 2 && out_dtype != c.dtype ? 2 : 1;
      CHECK(worst_error(got_grads[i], expected_grads[i], magnitudes[i], c.dtype, ulps) <= twice);
    }
  }
}

}  // namespace satformer::tests
