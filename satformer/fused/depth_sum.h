#pragma once
// The depth-weighted sum of DenseFormer and MUDDFormer (csrc/ops/depth_weighted_sum.h) as a node that adds the
// gradients of its sources to their buffers (shared_gradient.h).
#include <vector>

#include "csrc/ops/depth_weighted_sum.h"

namespace satformer::fused {

using ops::DepthSum;

// ops::depth_weighted_sum; where all sources are fan_out()d, their gradients are added to their buffers. Differentiable
// once.
std::vector<at::Tensor> sum_over_depth(const DepthSum& sum);

}  // namespace satformer::fused
