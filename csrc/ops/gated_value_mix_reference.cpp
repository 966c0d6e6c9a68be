#include "csrc/ops/gated_value_mix_reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

#include "csrc/ops/gated_value_mix_checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

at::Tensor softmax_over_heads(const at::Tensor& x) { return at::softmax(x, -1) * x.sym_size(-1); }

at::Tensor gate_value(const at::Tensor& x, Gate gate) {
  switch (gate) {
    case Gate::kRelu:
      return at::relu(x);
    case Gate::kSigmoid:
      return at::sigmoid(x);
    case Gate::kSoftmax:
      return softmax_over_heads(x);
    case Gate::kSoftmaxSigmoid:
      return softmax_over_heads(x) * at::sigmoid(x);
    case Gate::kTanh:
      return at::tanh(x);
    case Gate::kIdentity:
      return x;
  }
  TORCH_CHECK(false, "gate must be one of ", gate_names());
}

// The gate's Jacobian, transposed, times the gradient of alpha = gate(x).
at::Tensor gate_gradient(const at::Tensor& x, const at::Tensor& alpha, const at::Tensor& grad, Gate gate) {
  switch (gate) {
    case Gate::kRelu:
      return grad * (x > 0).to(grad.scalar_type());
    case Gate::kSigmoid:
      return grad * alpha * (1 - alpha);
    case Gate::kSoftmax:  // p_j H (g_j - sum_h p_h g_h)
      return alpha * (grad - (at::softmax(x, -1) * grad).sum(-1, /*keepdim=*/true));
    case Gate::kSoftmaxSigmoid:  // alpha_j g_j (2 - s_j) - p_j sum_h alpha_h g_h
      return alpha * grad * (2 - at::sigmoid(x)) - at::softmax(x, -1) * (alpha * grad).sum(-1, /*keepdim=*/true);
    case Gate::kTanh:
      return grad * (1 - alpha * alpha);
    case Gate::kIdentity:
      return grad;
  }
  TORCH_CHECK(false, "gate must be one of ", gate_names());
}

}  // namespace

at::Tensor apply_gate(const at::Tensor& logits, Gate gate) {
  return gate_value(logits.to(accumulate_dtype(logits)), gate);
}

at::Tensor gated_value_mix_reference(const at::Tensor& v, const at::Tensor& first_values, const at::Tensor& logits,
                                     Gate gate, const std::optional<at::Tensor>& scale,
                                     const std::optional<at::Tensor>& shift) {
  const at::ScalarType dtype = accumulate_dtype(v);
  at::Tensor alpha = gate_value(logits.to(dtype), gate);
  if (given(scale)) alpha = scale->to(dtype) * alpha;
  if (given(shift)) alpha = alpha + shift->to(dtype);
  return (v.to(dtype) + alpha.unsqueeze(-1) * first_values.to(dtype)).to(v.scalar_type());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> gated_value_mix_backward_reference(
    const at::Tensor& grad, const at::Tensor& first_values, const at::Tensor& logits, Gate gate,
    const std::optional<at::Tensor>& scale, const std::optional<at::Tensor>& shift, std::array<bool, 4> output_mask) {
  const at::ScalarType dtype = accumulate_dtype(grad);
  const std::array<bool, 4> wanted = wanted_gradients(output_mask, scale, shift);
  const at::Tensor x = logits.to(dtype), g = grad.to(dtype);
  const at::Tensor alpha = gate_value(x, gate);
  at::Tensor mixed = given(scale) ? scale->to(dtype) * alpha : alpha;
  if (given(shift)) mixed = mixed + shift->to(dtype);
  const at::Tensor grad_mixed = (g * first_values.to(dtype)).sum(-1);

  at::Tensor grad_first_values, grad_logits, grad_scale, grad_shift;
  if (wanted[0]) grad_first_values = (mixed.unsqueeze(-1) * g).to(first_values.scalar_type());
  if (wanted[1]) {
    const at::Tensor grad_alpha = given(scale) ? scale->to(dtype) * grad_mixed : grad_mixed;
    grad_logits = gate_gradient(x, alpha, grad_alpha, gate).to(logits.scalar_type());
  }
  if (wanted[2]) grad_scale = sum_terms(alpha * grad_mixed, scale);
  if (wanted[3]) grad_shift = sum_terms(grad_mixed, shift);
  return {grad_first_values, grad_logits, grad_scale, grad_shift};
}

}  // namespace satformer::ops
