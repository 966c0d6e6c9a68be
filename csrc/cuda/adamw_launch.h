#pragma once
// What adamw.cpp hands to the launcher of adamw.cu. Formulas: csrc/ops/adamw.h. No torch headers.
#include <cuda_runtime_api.h>

#include "csrc/cuda/types.h"

namespace satformer::ops::cuda {

// A parameter with what belongs to it: n numbers each. float64: parameter and state alike, never the state alone.
struct AdamWItem {
  FlatNumbers<void*> parameter, exp_avg, exp_avg_sq;
  FlatNumbers<const void*> gradient;
  int64_t n;
  double step_size, inverse_root;  // AdamWCorrection of csrc/ops/adamw_checks.h
};

// The same for all parameters.
struct AdamWCoefficients {
  FlatNumbers<const void*> gradient_factor;  // one number on the device, float32 or float64
  double beta1, beta2, eps;
  double decay;  // 1 - lr * weight_decay
};

cudaError_t launch_adamw(const AdamWItem* items, int64_t count, const AdamWCoefficients& coefficients,
                         cudaStream_t stream);

}  // namespace satformer::ops::cuda
