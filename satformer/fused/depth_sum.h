#pragma once
// The depth-weighted sum of DenseFormer and MUDDFormer, for models.
#include <vector>

#include "csrc/ops/depth_weighted_sum.h"

namespace satformer::nn {

using ops::DepthSum;

// ops::depth_weighted_sum; where all sources are fan_out()d, their gradients are added to their buffers.
std::vector<at::Tensor> sum_over_depth(const DepthSum& sum);

}  // namespace satformer::nn
