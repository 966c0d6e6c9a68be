#pragma once
// Checks of the causal attention operators, and their empty outputs; shared by every dispatch key.
#include <ATen/core/Tensor.h>

#include <tuple>

namespace satformer::ops {

// causal_attention: empty out and logsumexp.
std::tuple<at::Tensor, at::Tensor> outputs_of_causal_attention(const at::Tensor& q, const at::Tensor& k,
                                                               const at::Tensor& v);
// causal_attention_backward: empty gradients of q, k and v.
std::tuple<at::Tensor, at::Tensor, at::Tensor> outputs_of_causal_attention_backward(
    const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
    const at::Tensor& logsumexp);

}  // namespace satformer::ops
