#pragma once
// The CPU kernels' entry points; swiglu_kernel.cpp is compiled once for each CPU capability. Every tensor is a matrix
// of rows, contiguous in its last dimension.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>

namespace satformer::ops {

// y [rows, f], packed [rows, 2f].
using SwigluKernel = void (*)(const at::Tensor& y, const at::Tensor& packed);
// y undefined where it is not wanted.
using SwigluBackwardKernel = void (*)(const at::Tensor& grad_packed, const at::Tensor& y, const at::Tensor& grad,
                                      const at::Tensor& packed);

}  // namespace satformer::ops

namespace at::native {
DECLARE_DISPATCH(satformer::ops::SwigluKernel, satformer_swiglu_stub)
DECLARE_DISPATCH(satformer::ops::SwigluBackwardKernel, satformer_swiglu_backward_stub)
}  // namespace at::native
