#pragma once
// The CPU kernels' entry points. attention_inputs_kernel.cpp is compiled once for each CPU capability; ATen's
// DispatchStub picks one at run time.
#include <ATen/native/DispatchStub.h>

#include "csrc/ops/attention_inputs.h"

namespace satformer::ops {

// out: contiguous; out.v undefined where v' is not to be written.
using AttentionInputsKernel = void (*)(const AttentionInputs& in, const AttentionOperands& out);
// grads contiguous in their last dimension; `out` holds what is wanted, contiguous.
using AttentionInputsBackwardKernel = void (*)(const AttentionInputs& in, const AttentionOperands& grads,
                                               const AttentionInputTargets& targets,
                                               const AttentionInputGradients& out);

}  // namespace satformer::ops

// The macros specialise templates of this namespace.
namespace at::native {
DECLARE_DISPATCH(satformer::ops::AttentionInputsKernel, satformer_attention_inputs_stub)
DECLARE_DISPATCH(satformer::ops::AttentionInputsBackwardKernel, satformer_attention_inputs_backward_stub)
}  // namespace at::native
