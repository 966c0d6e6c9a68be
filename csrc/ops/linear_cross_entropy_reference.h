#pragma once
// linear_cross_entropy (csrc/ops/linear_cross_entropy.h) in plain ATen calls, the logits of all tokens at once: the
// definition that the operator is held to. Any device and strides; differentiable any number of times.
#include <ATen/core/Tensor.h>

namespace satformer::ops {

at::Tensor linear_cross_entropy_reference(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                          int64_t ignore_index = -100, double scale = 1.0);

}  // namespace satformer::ops
