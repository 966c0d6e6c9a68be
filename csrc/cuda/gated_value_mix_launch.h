#pragma once
// What the tensor side (gated_value_mix.cpp) hands to the launchers (gated_value_mix.cu): raw pointers, sizes and
// strides, so that neither the kernels nor nvcc see a torch header. Strides count elements.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "csrc/cuda/types.h"
#include "csrc/ops/gate.h"

namespace satformer::ops::cuda {

struct Gates {
  Gate gate;
  GateSource logits, scale, shift;
};

// Values of `dtype` (not float64), contiguous in hd.
struct MixArguments {
  Sizes sizes;
  DType dtype;
  Gates gates;
  void* out;
  const void *v, *first_values;
  Strides out_strides, v_strides, first_strides;
  int lanes = 0;  // threads a row; the launcher sets it
};

// Outputs are contiguous, null where not wanted.
struct MixBackwardArguments {
  Sizes sizes;
  DType dtype;
  Gates gates;
  const void *grad, *first_values;
  Strides grad_strides, first_strides;
  void* grad_first_values;           // [B, T, H, hd], dtype
  void* grad_logits;                 // [B, T, H], the logits' dtype
  float *scale_terms, *shift_terms;  // [B, T, H]
  float* dots;    // [B, T, H] scratch: must be given with grad_logits when the gate is one of the softmax gates
  int lanes = 0;  // threads a row; the launcher sets it
};

cudaError_t launch_mix(MixArguments arguments, cudaStream_t stream);
cudaError_t launch_mix_backward(MixBackwardArguments arguments, cudaStream_t stream);

}  // namespace satformer::ops::cuda
