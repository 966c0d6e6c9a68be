#pragma once
// sum_of_squares in plain ATen calls: the definition that the kernels are held to. Any device, any floating dtype, any
// strides. Formula: csrc/ops/sum_of_squares.h.
#include <ATen/core/Tensor.h>

namespace satformer::ops {

at::Tensor sum_of_squares_reference(at::TensorList tensors);

}  // namespace satformer::ops
