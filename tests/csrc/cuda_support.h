#pragma once
// What the *_CUDA tests share. They compare the GPU with the CPU; scripts/gpu_check runs them where there is a GPU.
#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

namespace satformer::tests {

// Whether a GPU can be used. If not, the calling test says that it is skipped, and why; it fails instead where the
// environment has SATFORMER_REQUIRE_CUDA=1.
bool has_cuda();

// The same numbers on the GPU under the same strides, with all memory that x is a view of.
at::Tensor to_cuda(const at::Tensor& x);
// x, a CPU tensor, on `device`: itself, or what to_cuda makes of it; undefined where x is.
at::Tensor on(at::Device device, const at::Tensor& x);
std::vector<at::Tensor> on(at::Device device, const std::vector<at::Tensor>& list);

inline constexpr std::array kCudaDtypes{at::kFloat, at::kBFloat16, at::kHalf};

}  // namespace satformer::tests
