#pragma once
// The CPU kernels' entry points; rms_norm_kernel.cpp is compiled once for each CPU capability.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

#include "csrc/ops/rms_norm_checks.h"

namespace satformer::ops {

using NormKernel = void (*)(const NormRows& rows);
using NormBackwardKernel = void (*)(const NormBackwardRows& rows);

}  // namespace satformer::ops

namespace at::native {
DECLARE_DISPATCH(satformer::ops::NormKernel, satformer_rms_norm_stub)
DECLARE_DISPATCH(satformer::ops::NormKernel, satformer_rms_norm_apply_stub)
DECLARE_DISPATCH(satformer::ops::NormBackwardKernel, satformer_rms_norm_backward_stub)
}  // namespace at::native
