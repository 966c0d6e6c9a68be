#include "tests/csrc/toy_affine_reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include "csrc/ops/row_arguments.h"

namespace satformer::tests::toy {

at::Tensor toy_affine_reference(const Affine& in) {
  at::Tensor y = in.factor * in.x.to(ops::accumulate_dtype(in.x));
  if (in.bias) y = y + *in.bias;
  return y.to(in.x.scalar_type());
}

}  // namespace satformer::tests::toy
