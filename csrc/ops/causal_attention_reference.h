#pragma once
// Causal attention in plain ATen calls, with all scores in memory: the definition that the kernels are held to, and
// what second derivatives use. Any device, any floating dtype, any strides; differentiable any number of times.
// Formulas: csrc/ops/causal_attention.h.
#include <ATen/core/Tensor.h>

#include <tuple>

namespace satformer::ops {

std::tuple<at::Tensor, at::Tensor> causal_attention_reference(const at::Tensor& q, const at::Tensor& k,
                                                              const at::Tensor& v);
// Of the arguments of causal_attention_backward it needs no others.
std::tuple<at::Tensor, at::Tensor, at::Tensor> causal_attention_backward_reference(const at::Tensor& grad,
                                                                                   const at::Tensor& q,
                                                                                   const at::Tensor& k,
                                                                                   const at::Tensor& v);

}  // namespace satformer::ops
