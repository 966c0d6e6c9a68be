#pragma once
// What the *_CUDA tests share. They compare the GPU with the CPU; scripts/gpu_check runs them where there is a GPU.
#include <ATen/core/Tensor.h>

namespace satformer::tests {

// Whether a GPU can be used. If not, the calling test says that it is skipped, and why; it fails instead where the
// environment has SATFORMER_REQUIRE_CUDA=1.
bool has_cuda();

// The same numbers on the GPU under the same strides, with all memory that x is a view of.
at::Tensor to_cuda(const at::Tensor& x);

}  // namespace satformer::tests
