#include "tests/csrc/adamw_support.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sqrt.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "csrc/ops/adamw_reference.h"
#include "tests/csrc/cuda_support.h"
#include "tests/csrc/operator_support.h"
#include "tests/support/tolerances.h"

namespace satformer::tests::adamw {
namespace {

using Change = std::function<at::Tensor(const at::Tensor&)>;

std::vector<at::Tensor> each(const std::vector<at::Tensor>& list, const Change& change) {
  std::vector<at::Tensor> result;
  result.reserve(list.size());
  for (const at::Tensor& x : list) result.push_back(change(x));
  return result;
}

Inputs changed(const Inputs& in, const Change& change) {
  const ops::AdamWTensors& t = in.tensors;
  return {{.parameters = each(t.parameters, change),
           .gradients = each(t.gradients, change),
           .exp_avgs = each(t.exp_avgs, change),
           .exp_avg_sqs = each(t.exp_avg_sqs, change),
           .gradient_factor = change(t.gradient_factor)},
          in.steps};
}

Inputs to_double(const Inputs& in) {
  return changed(in, [](const at::Tensor& x) { return x.detach().cpu().to(at::kDouble).clone(); });
}

bool equal_lists(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

}  // namespace

const std::vector<Dtypes> kAllDtypes{
    {at::kFloat, at::kFloat, at::kFloat, at::kFloat},
    {at::kFloat, at::kBFloat16, at::kFloat, at::kFloat},
    {at::kFloat, at::kDouble, at::kFloat, at::kFloat},
    {at::kBFloat16, at::kBFloat16, at::kBFloat16, at::kBFloat16},
    {at::kBFloat16, at::kBFloat16, at::kFloat, at::kFloat},
    {at::kBFloat16, at::kFloat, at::kBFloat16, at::kFloat},
    {at::kHalf, at::kHalf, at::kHalf, at::kHalf},
    {at::kHalf, at::kBFloat16, at::kFloat, at::kHalf},
    {at::kDouble, at::kDouble, at::kDouble, at::kDouble},
    {at::kDouble, at::kHalf, at::kDouble, at::kDouble},
};

std::string Dtypes::text() const {
  return fmt::format("parameter {} gradient {} exp_avg {} exp_avg_sq {}", c10::toString(parameter),
                     c10::toString(gradient), c10::toString(exp_avg), c10::toString(exp_avg_sq));
}

Inputs make_inputs(const std::vector<Sizes>& sizes, const Dtypes& dtypes, std::uint64_t seed) {
  Inputs in;
  in.tensors.gradient_factor = at::full({}, 0.37, seed % 2 == 0 ? at::kFloat : at::kDouble);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t s = 1000 * seed + 10 * i;
    const std::int64_t step = 1 + (static_cast<std::int64_t>(i) * 7) % 50;
    const double state = step == 1 ? 0.0 : 1.0;
    in.tensors.parameters.push_back(normal(sizes[i], dtypes.parameter, s));
    in.tensors.gradients.push_back(normal(sizes[i], dtypes.gradient, s + 1));
    in.tensors.exp_avgs.push_back((state * normal(sizes[i], at::kDouble, s + 2)).to(dtypes.exp_avg));
    in.tensors.exp_avg_sqs.push_back((state * normal(sizes[i], at::kDouble, s + 3).square()).to(dtypes.exp_avg_sq));
    in.steps.push_back(step);
  }
  return in;
}

void append(Inputs& inputs, const Inputs& more) {
  const auto add = [](std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  add(inputs.tensors.parameters, more.tensors.parameters);
  add(inputs.tensors.gradients, more.tensors.gradients);
  add(inputs.tensors.exp_avgs, more.tensors.exp_avgs);
  add(inputs.tensors.exp_avg_sqs, more.tensors.exp_avg_sqs);
  inputs.steps.insert(inputs.steps.end(), more.steps.begin(), more.steps.end());
}

Inputs copy_of(const Inputs& inputs) {
  return changed(inputs, [](const at::Tensor& x) { return x.detach().clone(); });
}

Inputs on_cuda(const Inputs& inputs) { return changed(inputs, to_cuda); }

double worst_update_error(const Inputs& before, const Inputs& got, const ops::AdamWSettings& settings) {
  if (!equal_lists(before.tensors.gradients, each(got.tensors.gradients, [](const at::Tensor& x) { return x.cpu(); })))
    return std::numeric_limits<double>::infinity();
  const auto [lr, beta1, beta2, eps, weight_decay] = settings;
  const Inputs old = to_double(before);
  const Inputs expected = to_double(before);
  ops::adamw_reference_(expected.tensors, settings, expected.steps);
  double worst = 0;
  for (std::size_t i = 0; i < expected.steps.size(); ++i) {
    const at::ScalarType dtype = got.tensors.parameters[i].scalar_type();
    const auto t = static_cast<double>(expected.steps[i]);
    const at::Tensor g = (old.tensors.gradients[i] * old.tensors.gradient_factor).abs();
    const at::Tensor m = beta1 * old.tensors.exp_avgs[i].abs() + (1 - beta1) * g;
    const at::Tensor& v = expected.tensors.exp_avg_sqs[i];
    const at::Tensor update =
        lr / (1 - std::pow(beta1, t)) * m / (at::sqrt(v) / std::sqrt(1 - std::pow(beta2, t)) + eps);
    const at::Tensor p = old.tensors.parameters[i].abs() * (1 - lr * weight_decay) + update;
    const auto error = [&](const at::Tensor& x, const at::Tensor& of, const at::Tensor& magnitude) {
      worst = std::max(worst, worst_error(x.cpu(), of, magnitude, dtype));
    };
    error(got.tensors.parameters[i], expected.tensors.parameters[i], p);
    error(got.tensors.exp_avgs[i], expected.tensors.exp_avgs[i], m);
    error(got.tensors.exp_avg_sqs[i], v, v);
  }
  return worst;
}

}  // namespace satformer::tests::adamw
