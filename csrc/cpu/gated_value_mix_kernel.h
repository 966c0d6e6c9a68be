#pragma once
// The CPU kernels' entry points. gated_value_mix_kernel.cpp is compiled once for each CPU capability; ATen's
// DispatchStub picks one at run time.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

#include "csrc/ops/gated_value_mix_checks.h"

namespace satformer::ops {

// out [B, T, H_kv, hd], contiguous or v itself.
using GatedValueMixKernel = void (*)(const at::Tensor& out, const at::Tensor& v, const at::Tensor& first_values,
                                     const GateArguments& gates);
// grad contiguous in its last dimension.
using GatedValueMixBackwardKernel = void (*)(const GatedValueMixGradients& out, const at::Tensor& grad,
                                             const at::Tensor& first_values, const GateArguments& gates);

}  // namespace satformer::ops

// The macros specialise templates of this namespace.
namespace at::native {
DECLARE_DISPATCH(satformer::ops::GatedValueMixKernel, satformer_gated_value_mix_stub)
DECLARE_DISPATCH(satformer::ops::GatedValueMixBackwardKernel, satformer_gated_value_mix_backward_stub)
}  // namespace at::native
