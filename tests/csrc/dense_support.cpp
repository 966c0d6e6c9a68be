#include "tests/csrc/dense_support.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/max.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <limits>

namespace satformer::tests {

std::string first_line_of_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

at::Tensor leaf(const at::Tensor& x) { return x.detach().requires_grad_(); }

at::Tensor central_differences(const std::function<double()>& value, const at::Tensor& x) {
  constexpr double kStep = 1e-5;
  at::Tensor result = at::zeros(x.sizes(), at::kDouble);
  double* data = x.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const double centre = data[i];
    data[i] = centre + kStep;
    const double above = value();
    data[i] = centre - kStep;
    const double below = value();
    data[i] = centre;
    result.mutable_data_ptr<double>()[i] = (above - below) / (2 * kStep);
  }
  return result;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  const double worst = ((a - b).abs() / b.abs().clamp_min(1)).max().item<double>();
  return worst == worst ? worst : std::numeric_limits<double>::infinity();
}

}  // namespace satformer::tests
