#pragma once
// The SwiGLU operators in plain ATen calls: the definition that the kernels are held to, and what second derivatives
// use. Any device, any floating dtype, any strides; differentiable any number of times. Formulas: csrc/ops/swiglu.h.
#include <ATen/core/Tensor.h>

#include <tuple>

namespace satformer::ops {

at::Tensor swiglu_reference(const at::Tensor& packed);
std::tuple<at::Tensor, at::Tensor> swiglu_backward_reference(const at::Tensor& grad, const at::Tensor& packed,
                                                             bool with_output);

}  // namespace satformer::ops
