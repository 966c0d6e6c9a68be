#pragma once
// adamw_ in plain ATen calls: the definition that the kernels are held to. Any device, any floating dtype, any strides.
// Formula: csrc/ops/adamw.h.
#include "csrc/ops/adamw.h"

namespace satformer::ops {

void adamw_reference_(const AdamWTensors& tensors, const AdamWSettings& settings, at::IntArrayRef steps);

}  // namespace satformer::ops
