#pragma once
// What swiglu.cpp hands to the launchers of swiglu.cu. Formulas: csrc/ops/swiglu.h. No torch headers.
#include <cuda_runtime_api.h>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

// Every matrix is [rows, f]; gate and up are the halves of packed.
struct SwigluArguments {
  int64_t rows, f;
  Input gate, up;
  Output y;
};

struct SwigluBackwardArguments {
  int64_t rows, f;
  Input grad, gate, up;
  Output grad_gate, grad_up;
  Output y;  // absent where it is not wanted
};

cudaError_t launch_swiglu(const SwigluArguments& arguments, cudaStream_t stream);
cudaError_t launch_swiglu_backward(const SwigluBackwardArguments& arguments, cudaStream_t stream);

}  // namespace satformer::ops::cuda
