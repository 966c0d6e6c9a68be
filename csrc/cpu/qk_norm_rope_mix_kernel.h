#pragma once
// The CPU kernels' entry points. qk_norm_rope_mix_kernel.cpp is compiled once for each CPU capability; ATen's
// DispatchStub picks one at run time.
#include <ATen/native/DispatchStub.h>

#include "csrc/ops/qk_norm_rope_mix.h"

namespace satformer::ops {

// out: contiguous; out.v undefined where v' is not to be written.
using MixInputsKernel = void (*)(const MixInputs& in, const MixOutputs& out);
// grads contiguous in their last dimension; `out` holds what is wanted, contiguous.
using MixInputsBackwardKernel = void (*)(const MixInputs& in, const MixOutputs& grads,
                                         const MixGradientTargets& targets, const MixGradients& out);

}  // namespace satformer::ops

// The macros specialise templates of this namespace.
namespace at::native {
DECLARE_DISPATCH(satformer::ops::MixInputsKernel, satformer_qk_norm_rope_mix_stub)
DECLARE_DISPATCH(satformer::ops::MixInputsBackwardKernel, satformer_qk_norm_rope_mix_backward_stub)
}  // namespace at::native
