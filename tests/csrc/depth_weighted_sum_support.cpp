#include "tests/csrc/depth_weighted_sum_support.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "csrc/ops/depth_weighted_sum_reference.h"
#include "tests/catch.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/dense_support.h"
#include "tests/csrc/operator_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests {

std::string DepthCase::text() const {
  return fmt::format("[{}, {}, {}] S {} C {} {} parameters {} per_token {} base {} norms {} {} strided {}", B, T, d, S,
                     C, c10::toString(dtype), c10::toString(parameters_dtype), per_token, base, source_norms,
                     output_norms, strided);
}

ops::DepthSum make_depth_sum(const DepthCase& c, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto normal = [&](const std::vector<std::int64_t>& shape) { return at::randn(shape, generator); };
  ops::DepthSum sum;
  for (std::int64_t j = 0; j < c.S; ++j) {
    sum.sources.push_back(c.strided ? normal({c.T, c.B, c.d + 3}).to(c.dtype).transpose(0, 1).slice(2, 1, c.d + 1)
                                    : normal({c.B, c.T, c.d}).to(c.dtype));
  }
  sum.weights = (c.per_token ? normal({c.B, c.T, c.C, c.S}) : normal({c.C, c.S})).to(c.parameters_dtype);
  if (c.base) sum.base = normal({c.B, c.T, c.d}).to(c.dtype);
  for (std::int64_t j = 0; c.source_norms && j < c.S; ++j) {
    sum.source_norm_weights.push_back(normal({c.d}).to(c.parameters_dtype));
    sum.source_inverse_rms.push_back(ops::inverse_rms_reference(sum.sources[j], kDepthEps));
  }
  for (std::int64_t i = 0; c.output_norms && i < c.C; ++i) {
    sum.output_norm_weights.push_back(normal({c.d}).to(c.parameters_dtype));
  }
  sum.output_norm_eps = kDepthEps;
  return sum;
}

std::vector<at::Tensor> make_depth_grads(const DepthCase& c, std::uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed + 1000);
  std::vector<at::Tensor> grads;
  for (std::int64_t i = 0; i < c.C; ++i) grads.push_back(at::randn({c.B, c.T, c.d}, generator).to(c.dtype));
  return grads;
}

std::vector<at::Tensor> to_double(const std::vector<at::Tensor>& list) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& x : list) result.push_back(x.to(at::kDouble));
  return result;
}

namespace {

// The sums s_c, the magnitudes m_c = sum_j |w n_j| that their errors are relative to, and what follows for the output
// norm: r_c and the relative error of r_c, rho = r^2 mean(|s| m), both [B, T, 1].
struct Sums {
  std::vector<at::Tensor> s, m, r, rho;
};

Sums sums_of(const ops::DepthSum& sum) {
  ops::DepthSum plain = sum;
  plain.base.reset();
  plain.output_norm_weights.clear();
  ops::DepthSum magnitudes = plain;
  magnitudes.weights = plain.weights.abs();
  for (at::Tensor& x : magnitudes.sources) x = x.abs();
  for (at::Tensor& x : magnitudes.source_norm_weights) x = x.abs();
  Sums out{ops::depth_weighted_sum_reference(plain), ops::depth_weighted_sum_reference(magnitudes), {}, {}};
  for (std::size_t c = 0; c < out.s.size(); ++c) {
    out.r.push_back(ops::inverse_rms_reference(out.s[c], sum.output_norm_eps).unsqueeze(-1));
    out.rho.push_back(out.r[c] * out.r[c] * (out.s[c].abs() * out.m[c]).mean(-1, /*keepdim=*/true));
  }
  return out;
}

at::Tensor weight_of(const ops::DepthSum& sum, std::size_t c, std::size_t j) {
  return sum.weights.select(-2, static_cast<std::int64_t>(c))
      .select(-1, static_cast<std::int64_t>(j))
      .abs()
      .unsqueeze(-1);
}

}  // namespace

std::vector<at::Tensor> output_magnitudes(const ops::DepthSum& sum) {
  const Sums sums = sums_of(sum);
  std::vector<at::Tensor> result;
  for (std::size_t c = 0; c < sums.s.size(); ++c) {
    at::Tensor m = sums.m[c];
    if (!sum.output_norm_weights.empty()) {
      m = sum.output_norm_weights[c].abs() * sums.r[c] * (m + sums.s[c].abs() * (1 + sums.rho[c]));
    }
    result.push_back(sum.base ? m + sum.base->abs() : m);
  }
  return result;
}

std::vector<at::Tensor> gradient_magnitudes(const ops::DepthSum& sum, const std::vector<at::Tensor>& grads) {
  const Sums sums = sums_of(sum);
  const std::size_t S = sum.sources.size(), C = grads.size();
  ops::DepthSumGradients out;
  std::vector<at::Tensor> G;  // magnitudes of the gradients of the sums
  for (std::size_t c = 0; c < C; ++c) {
    const at::Tensor grad = grads[c].abs();
    if (sum.output_norm_weights.empty()) {
      G.push_back(grad);
      continue;
    }
    // G = r y - s r^3 mean(s y) with y = p grad; m and rho where s and r carry their errors.
    const at::Tensor &s = sums.s[c].abs(), &m = sums.m[c], &r = sums.r[c], &rho = sums.rho[c];
    const at::Tensor y = grad * sum.output_norm_weights[c].abs();
    const auto mean = [](const at::Tensor& x) { return x.mean(-1, /*keepdim=*/true); };
    G.push_back(r * y * (1 + rho) + r * r * r * ((s + m + 3 * rho * s) * mean(s * y) + s * mean(m * y)));
    out.output_norm_weights.push_back((grad * r * (s * (1 + rho) + m)).sum(at::IntArrayRef({0, 1})));
  }
  std::vector<at::Tensor> to_weights(C * S);
  at::Tensor base;
  for (std::size_t j = 0; j < S; ++j) {
    const at::Tensor x = sum.sources[j].abs();
    const bool normed = !sum.source_norm_weights.empty();
    const at::Tensor g = normed ? sum.source_norm_weights[j].abs() : at::Tensor();
    const at::Tensor r = normed ? sum.source_inverse_rms[j].unsqueeze(-1) : at::Tensor();
    at::Tensor to_source, to_inverse;
    for (std::size_t c = 0; c < C; ++c) {
      const at::Tensor w = weight_of(sum, c, j), product = (G[c] * (normed ? g * x : x)).sum(-1);
      to_weights[c * S + j] = normed ? product * r.squeeze(-1) : product;
      to_source = to_source.defined() ? to_source + w * G[c] : w * G[c];
      to_inverse = to_inverse.defined() ? to_inverse + w.squeeze(-1) * product : w.squeeze(-1) * product;
    }
    out.sources.push_back(normed ? to_source * g * r : to_source);
    if (!normed) continue;
    out.source_norm_weights.push_back((to_source * x * r).sum(at::IntArrayRef({0, 1})));
    out.source_inverse_rms.push_back(to_inverse);
  }
  out.weights = at::stack(to_weights, -1)
                    .reshape({sum.sources[0].size(0), sum.sources[0].size(1), static_cast<std::int64_t>(C),
                              static_cast<std::int64_t>(S)});
  if (sum.weights.dim() == 2) out.weights = out.weights.sum(at::IntArrayRef({0, 1}));
  if (sum.base) {
    out.base = at::zeros_like(*sum.base);
    for (const at::Tensor& grad : grads) out.base = out.base + grad.abs();
  }
  return ops::tensors_of(out);
}

namespace {

// One u for each term of a sum: S sources, d columns, C ways, all tokens for what they share.
double ulps_of(const DepthCase& c, bool over_tokens) {
  return kArithmeticUlps + static_cast<double>(c.S + c.d + c.C + (over_tokens ? c.B * c.T : 0));
}

}  // namespace

void check_depth_sum(const DepthCase& c, std::uint64_t seed, at::Device device) {
  INFO(c.text());
  const ops::DepthSum in = make_depth_sum(c, seed), d = to_double(in);
  const std::vector<at::Tensor> grads = make_depth_grads(c, seed), double_grads = to_double(grads);

  const ops::DepthSum x = leaves(on(device, in)), expected_x = leaves(d);
  const std::vector<at::Tensor> got = ops::depth_weighted_sum(x),
                                expected = ops::depth_weighted_sum_reference(expected_x),
                                magnitude = output_magnitudes(d);
  REQUIRE(got.size() == static_cast<std::size_t>(c.C));
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i].device().type() == device.type());
    CHECK(got[i].scalar_type() == c.dtype);
    CHECK(got[i].is_contiguous());
    CHECK(worst_error(got[i], expected[i], magnitude[i], c.dtype, ulps_of(c, false)) <= 1);
  }

  const std::vector<at::Tensor> inputs = ops::tensors_of(x);
  const std::vector<at::Tensor> got_grads = torch::autograd::grad(got, inputs, on(device, grads));
  const std::vector<at::Tensor> expected_grads =
      torch::autograd::grad(expected, ops::tensors_of(expected_x), double_grads);
  const std::vector<at::Tensor> magnitudes = gradient_magnitudes(d, double_grads);
  REQUIRE(magnitudes.size() == inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    INFO("gradient " << i << " of shape " << inputs[i].sizes());
    CHECK(got_grads[i].scalar_type() == inputs[i].scalar_type());
    CHECK(worst_error(got_grads[i], expected_grads[i], magnitudes[i], c.dtype, ulps_of(c, true)) <= 1);
  }
}

void check_inverse_rms(const std::vector<std::int64_t>& shape, at::ScalarType dtype, at::Device device) {
  const at::Tensor in = normal(shape, dtype, 11);
  const at::Tensor x = leaf(on(device, in)), d = leaf(in.to(at::kDouble));
  const at::Tensor got = ops::inverse_rms(x, 1e-6), expected = ops::inverse_rms_reference(d, 1e-6);
  const double n = static_cast<double>(shape.back());
  CHECK(got.device().type() == device.type());
  CHECK(worst_error(got, expected, expected.abs(), dtype, kArithmeticUlps + n) <= 1);
  const at::Tensor grad = normal(expected.sizes().vec(), got.scalar_type(), 12);
  const at::Tensor got_grad = torch::autograd::grad({got}, {x}, {on(device, grad)})[0],
                   expected_grad = torch::autograd::grad({expected}, {d}, {grad.to(at::kDouble)})[0];
  CHECK(got_grad.scalar_type() == dtype);
  CHECK(worst_error(got_grad, expected_grad, expected_grad.abs(), dtype, kArithmeticUlps + 3 * n) <= 1);
}

}  // namespace satformer::tests
