#pragma once
// The CPU kernel's entry point; adamw_kernel.cpp is compiled once for each CPU capability.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

#include "csrc/cpu/flat_blocks.h"

namespace satformer::ops {

template <typename pointer_t>
struct AdamWMemory {
  pointer_t data;
  at::ScalarType dtype;
};

// A parameter with what belongs to it; all dense and alike, how many numbers, FlatBlocks tells.
struct AdamWItem {
  AdamWMemory<void*> parameter, exp_avg, exp_avg_sq;
  AdamWMemory<const void*> gradient;
  double step_size, inverse_root;  // AdamWCorrection of csrc/ops/adamw_checks.h
};

// The same for all parameters.
struct AdamWCoefficients {
  double gradient_factor, beta1, beta2, eps;
  double decay;  // 1 - lr * weight_decay
};

using AdamWKernel = void (*)(const AdamWItem* items, const FlatBlocks& blocks, const AdamWCoefficients& coefficients);

}  // namespace satformer::ops

namespace at::native {
DECLARE_DISPATCH(satformer::ops::AdamWKernel, satformer_adamw_stub)
}  // namespace at::native
