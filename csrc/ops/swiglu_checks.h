#pragma once
// Checks of the SwiGLU operators, and their empty outputs; shared by every dispatch key.
#include <ATen/core/Tensor.h>

#include <tuple>

namespace satformer::ops {

// swiglu: [..., 2f] -> an empty [..., f].
at::Tensor outputs_of_swiglu(const at::Tensor& packed);
// swiglu_backward: an empty gradient and, with with_output, an empty y.
std::tuple<at::Tensor, at::Tensor> outputs_of_swiglu_backward(const at::Tensor& grad, const at::Tensor& packed,
                                                              bool with_output);

// swiglu_backward_: both are overwritten.
void check_swiglu_backward_in_place(at::Tensor& packed, at::Tensor& grad);

}  // namespace satformer::ops
