#include "tests/csrc/dense_support.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/max.h>
#include <ATen/ops/sub.h>

#include <limits>

namespace satformer::tests {

at::Tensor leaf(const at::Tensor& x) { return x.detach().requires_grad_(); }

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  const double worst = ((a - b).abs() / b.abs().clamp_min(1)).max().item<double>();
  return worst == worst ? worst : std::numeric_limits<double>::infinity();
}

}  // namespace satformer::tests
