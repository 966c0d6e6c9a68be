#pragma once
// The CPU kernel's entry point; linear_cross_entropy_kernel.cpp is compiled once for each CPU capability.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

#include "csrc/ops/linear_cross_entropy_chunks.h"

namespace satformer::ops {

using LogitRowsKernel = void (*)(const LogitRows& rows);

}  // namespace satformer::ops

namespace at::native {
DECLARE_DISPATCH(satformer::ops::LogitRowsKernel, satformer_logit_rows_stub)
}  // namespace at::native
