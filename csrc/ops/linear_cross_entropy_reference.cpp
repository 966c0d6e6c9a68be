#include "csrc/ops/linear_cross_entropy_reference.h"
#include "csrc/ops/row_arguments.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/t.h>

namespace satformer::ops {

at::Tensor linear_cross_entropy_reference(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                          int64_t ignore_index, double scale) {
  const at::Tensor logits = at::mm(hidden, weight.t()).to(accumulate_dtype(hidden));
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, ignore_index).mul(scale);
}

}  // namespace satformer::ops
