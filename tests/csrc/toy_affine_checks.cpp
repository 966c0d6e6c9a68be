#include "tests/csrc/toy_affine_checks.h"

#include <ATen/ops/empty.h>

#include "csrc/ops/checks.h"

namespace satformer::tests::toy {

void check_toy_affine(const Affine& in) {
  const ops::Argument x{"toy_affine", "x", in.x};
  ops::check_values_dtype(x);
  ops::check_dims_at_least(x, 1, "[..., n]");
  if (!in.bias) return;
  const ops::Argument bias{"toy_affine", "bias", *in.bias};
  ops::check_sizes(bias, in.x.sym_sizes().slice(in.x.dim() - 1), ", the last dimension of x");
  ops::check_same_dtype(bias, x);
  ops::check_device(bias, x);
}

at::Tensor outputs_of_toy_affine(const Affine& in) {
  check_toy_affine(in);
  return at::empty_symint(in.x.sym_sizes(), in.x.options());
}

}  // namespace satformer::tests::toy
