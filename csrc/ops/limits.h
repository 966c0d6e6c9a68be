#pragma once
// Limits of the operators that checks, kernels and documents share. Free of torch headers: the CUDA kernels read it
// too.
namespace satformer::ops {

// Of qk_norm_rope_mix on CUDA: a warp holds a head in registers.
inline constexpr int kLargestCudaHeadDim = 512;

}  // namespace satformer::ops
