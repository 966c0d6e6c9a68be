#pragma once
// The sum of squares of all numbers in a list of tensors, from which the global norm of gradients follows:
//
//   s = sum over i, j of tensors[i][j]^2      [], float64, on the tensors' device
//
//   tensors  any number of them, of any sizes, also empty ones; float32, bfloat16, float16 and float64 in any mixture;
//            one device. Any strides; a tensor with gaps or overlaps in memory is copied first. [] gives 0 on the CPU.
//
// Squares and sums are in float64: of float32, bfloat16 and float16 every square is exact and none overflows, so that
// s is off by no more than N 2^-53 s for N numbers (float64: (N + 1) 2^-53 s). An infinity among the numbers gives
// infinity, a NaN gives NaN. The order of the sums depends on the sizes alone: the same bits for any number of threads
// (CPU), in every run (CUDA), and but for float64 for every CPU capability.
//
// Not differentiable. A wrong argument is a c10::Error that names operator, list index and what came.
#include <ATen/core/Tensor.h>

namespace satformer::ops {

at::Tensor sum_of_squares(at::TensorList tensors);

}  // namespace satformer::ops
