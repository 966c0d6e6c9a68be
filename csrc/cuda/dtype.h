#pragma once
// The dtypes that launchers and kernels know, without a torch header.

namespace satformer::ops::cuda {

enum class DType { kFloat32, kBFloat16, kFloat16, kFloat64 };

}  // namespace satformer::ops::cuda
