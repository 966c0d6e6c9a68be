#include "csrc/ops/sum_of_squares_reference.h"

#include <ATen/ops/add.h>
#include <ATen/ops/square.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

namespace satformer::ops {

at::Tensor sum_of_squares_reference(at::TensorList tensors) {
  const at::TensorOptions options = tensors.empty() ? at::TensorOptions(at::kCPU) : tensors[0].options();
  at::Tensor sum = at::zeros({}, options.dtype(at::kDouble).layout(at::kStrided));
  for (const at::Tensor& x : tensors) sum = at::add(sum, at::sum(at::square(x.to(at::kDouble))));
  return sum;
}

}  // namespace satformer::ops
