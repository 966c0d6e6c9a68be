#pragma once
// depth_weighted_sum and inverse_rms in plain ATen calls: the definitions that the kernels are held to. Any device, any
// floating dtype, any strides; differentiable any number of times.
#include <ATen/core/Tensor.h>

#include <vector>

#include "csrc/ops/depth_weighted_sum.h"

namespace satformer::ops {

std::vector<at::Tensor> depth_weighted_sum_reference(const DepthSum& sum);
at::Tensor inverse_rms_reference(const at::Tensor& x, double eps);

}  // namespace satformer::ops
