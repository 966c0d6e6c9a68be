#pragma once
// The CPU kernel's entry point; sum_of_squares_kernel.cpp is compiled once for each CPU capability.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

#include "csrc/cpu/flat_blocks.h"

namespace satformer::ops {

// The numbers of a dense tensor; how many, FlatBlocks tells.
struct FlatNumbers {
  const void* data;
  at::ScalarType dtype;
};

// Writes the sum of squares of each block.
using SumOfSquaresKernel = void (*)(const FlatNumbers* tensors, const FlatBlocks& blocks, double* block_sums);

}  // namespace satformer::ops

namespace at::native {
DECLARE_DISPATCH(satformer::ops::SumOfSquaresKernel, satformer_sum_of_squares_stub)
}  // namespace at::native
