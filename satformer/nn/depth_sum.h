#pragma once
// The depth-weighted sum of DenseFormer and MUDDFormer, for models.
#include "csrc/ops/depth_weighted_sum.h"

namespace satformer::nn {

using ops::depth_weighted_sum;
using ops::DepthSum;

}  // namespace satformer::nn
