#pragma once
// Checks of sum_of_squares, shared by every dispatch key, and the form in which kernels take the list.
#include <ATen/core/Tensor.h>

#include <vector>

namespace satformer::ops {

void check_sum_of_squares(at::TensorList tensors);

// The tensors that hold numbers, each dense: itself, or else a contiguous copy.
std::vector<at::Tensor> dense_tensors(at::TensorList tensors);

}  // namespace satformer::ops
