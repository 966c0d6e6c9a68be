#pragma once
// SwiGLU (Shazeer 2020, equation 6) of a packed projection: gate and up lie beside one another, as one matrix product
// writes them.
//
//   y = silu(gate) * up,   silu(a) = a / (1 + exp(-a))      [..., f]
//
//   packed  [..., 2f]  gate = packed[..., :f], up = packed[..., f:]. float32, bfloat16 or float16; float64 on CPU. Any
//                      strides; where the last dimension is not contiguous, it is copied first.
//
// Arithmetic in float32 (float64 for float64), one rounding. Differentiable twice. Saved: packed. A wrong argument is a
// c10::Error that names operator, argument and what it got.
#include <ATen/core/Tensor.h>

#include <tuple>

namespace satformer::ops {

at::Tensor swiglu(const at::Tensor& packed);

// (grad_packed, y): for the gradient `grad` [..., f] of y, in any floating dtype, with s = 1 / (1 + exp(-gate)):
//
//   d gate = grad * up * s * (1 + gate * (1 - s)),   d up = grad * gate * s      [..., 2f], packed's dtype
//
// With with_output, y comes again from the same pass, bit for bit, so that the caller need not keep it for the gradient
// of the projection that reads it; else it is undefined.
std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& packed, bool with_output);

// The same with output, without new memory: packed becomes grad_packed, grad becomes y. Both contiguous, of one dtype,
// and sharing no memory; not differentiable. Under autograd an error where one of them requires a gradient.
void swiglu_backward_(at::Tensor& packed, at::Tensor& grad);

}  // namespace satformer::ops
