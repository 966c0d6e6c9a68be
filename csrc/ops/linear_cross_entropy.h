#pragma once
// The cross-entropy of a linear layer's logits, without ever holding the logits of more than a chunk of tokens:
//
//   logits = hidden weight^T                                                                [N, V]
//   loss   = scale * sum over t with targets[t] != ignore_index of -log softmax(logits[t])[targets[t]]      []
//
//   hidden   [N, d]  float32, bfloat16 or float16; float64 on CPU; any strides
//   weight   [V, d]  hidden's dtype
//   targets  [N]     int64: 0 .. V-1 or ignore_index. A CUDA kernel cannot throw without waiting for it: there a target
//                    out of range makes the loss NaN.
//   scale            1 / count for the mean: then the backward pass has nothing to multiply
//   loss             float32 (float64 for float64)
//
// A chunk's logits have hidden's dtype; softmax and sums are float32 (float64 for float64), where float32's exp is
// accurate to 2^-20. Where a gradient will be needed, the same pass over a chunk turns its logits into their gradients
// and adds up those of hidden and weight, so that the backward pass only multiplies by the incoming number (and on CPU
// not even that when it is exactly 1). Differentiable once. A wrong argument is a c10::Error that names operator,
// argument and what it got.
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

namespace satformer::ops {

at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                                int64_t ignore_index = -100, double scale = 1.0);

// (loss, grad_hidden, grad_weight); undefined where output_mask, for the gradients in this order, is false:
//
//   grad_logits = scale * (softmax(logits) - onehot(targets)), 0 in the rows of ignored targets
//   grad_hidden = grad_logits weight          [N, d], hidden's dtype
//   grad_weight = grad_logits^T hidden        [V, d], grad_weight_dtype (absent: weight's), added up in float32
//
// Not differentiable itself.
std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_cross_entropy_with_gradients(
    const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets, int64_t ignore_index = -100,
    double scale = 1.0, std::array<bool, 2> output_mask = {true, true},
    std::optional<at::ScalarType> grad_weight_dtype = std::nullopt);

}  // namespace satformer::ops
