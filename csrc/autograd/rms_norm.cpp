// Autograd: saves sum (or x), weight and inverse_rms; the backward is the operator rms_norm_backward, and its own
// derivative goes through the composite definition. Autocast: y in the autocast dtype, x and residual as they come.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/rms_norm.h"
#include "csrc/ops/rms_norm_reference.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Dtype = std::optional<at::ScalarType>;

struct RMSNorm : torch::autograd::Function<RMSNorm> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double eps,
                               Dtype out_dtype) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [y, inverse_rms] = rms_norm(x, weight, eps, out_dtype);
    context->save_for_backward({x, weight, inverse_rms});
    context->mark_non_differentiable({inverse_rms});
    return {y, inverse_rms};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    auto [grad_x, grad_weight, unused] = rms_norm_backward(grads[0], std::nullopt, saved[0], saved[1], saved[2]);
    return {grad_x, grad_weight, {}, {}};
  }
};

struct AddRMSNorm : torch::autograd::Function<AddRMSNorm> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& residual,
                               const at::Tensor& weight, double eps, Dtype out_dtype) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [sum, y, inverse_rms] = add_rms_norm(x, residual, weight, eps, out_dtype);
    context->save_for_backward({sum, weight, inverse_rms});
    context->saved_data["residual_dtype"] = static_cast<int64_t>(residual.scalar_type());
    context->mark_non_differentiable({inverse_rms});
    context->set_materialize_grads(false);
    return {sum, y, inverse_rms};
  }

  // grads: of sum and y; one of them may be undefined.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const auto residual_dtype = static_cast<at::ScalarType>(context->saved_data["residual_dtype"].toInt());
    const at::Tensor &grad_sum = grads[0], &grad_y = grads[1];
    if (!grad_y.defined()) {
      return {grad_sum, grad_sum.defined() ? grad_sum.to(residual_dtype) : grad_sum, {}, {}, {}};
    }
    auto [grad_x, grad_weight, grad_residual] =
        rms_norm_backward(grad_y, grad_sum, saved[0], saved[1], saved[2], residual_dtype);
    return {grad_x, grad_residual.defined() ? grad_residual : grad_x, grad_weight, {}, {}};
  }
};

std::tuple<at::Tensor, at::Tensor> rms_norm_autograd(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                     Dtype out_dtype) {
  variable_list out = RMSNorm::apply(x, weight, eps, out_dtype);
  return {out[0], out[1]};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_autograd(const at::Tensor& x, const at::Tensor& residual,
                                                                     const at::Tensor& weight, double eps,
                                                                     Dtype out_dtype) {
  variable_list out = AddRMSNorm::apply(x, residual, weight, eps, out_dtype);
  return {out[0], out[1], out[2]};
}

bool differentiates(const at::TensorBase& a, const at::TensorBase& b, const at::TensorBase& c) {
  return at::GradMode::is_enabled() && (a.requires_grad() || b.requires_grad() || c.requires_grad());
}

at::Tensor rms_norm_apply_autograd(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                   Dtype out_dtype) {
  if (differentiates(sum, weight, inverse_rms)) {
    return rms_norm_apply_reference(sum, weight, inverse_rms, out_dtype);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return rms_norm_apply(sum, weight, inverse_rms, out_dtype);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward_autograd(
    const at::Tensor& grad_y, const std::optional<at::Tensor>& grad_sum, const at::Tensor& sum,
    const at::Tensor& weight, const at::Tensor& inverse_rms, Dtype residual_dtype) {
  if (differentiates(grad_y, sum, weight) || (given(grad_sum) && differentiates(*grad_sum, sum, weight))) {
    return rms_norm_backward_reference(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return rms_norm_backward(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype);
}

Dtype autocast_dtype(const at::Tensor& x, Dtype out_dtype) {
  if (out_dtype || x.scalar_type() == at::kDouble) return out_dtype;  // autocast leaves float64 alone
  return at::autocast::get_autocast_dtype(x.device().type());
}

template <c10::DispatchKey kKey>
std::tuple<at::Tensor, at::Tensor> rms_norm_autocast(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                     Dtype out_dtype) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  return rms_norm(x, weight, eps, autocast_dtype(x, out_dtype));
}

template <c10::DispatchKey kKey>
std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_autocast(const at::Tensor& x, const at::Tensor& residual,
                                                                     const at::Tensor& weight, double eps,
                                                                     Dtype out_dtype) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  return add_rms_norm(x, residual, weight, eps, autocast_dtype(x, out_dtype));
}

template <c10::DispatchKey kKey>
at::Tensor rms_norm_apply_autocast(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                                   Dtype out_dtype) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kKey);
  return rms_norm_apply(sum, weight, inverse_rms, autocast_dtype(sum, out_dtype));
}

template <c10::DispatchKey kKey>
void register_autocast(torch::Library& library) {
  implement<"rms_norm", &rms_norm_autocast<kKey>>(library);
  implement<"add_rms_norm", &add_rms_norm_autocast<kKey>>(library);
  implement<"rms_norm_apply", &rms_norm_apply_autocast<kKey>>(library);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;

  implement<"rms_norm", &rms_norm_autograd>(library);
  implement<"add_rms_norm", &add_rms_norm_autograd>(library);
  implement<"rms_norm_apply", &rms_norm_apply_autograd>(library);
  implement<"rms_norm_backward", &rms_norm_backward_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCPU, library) {
  satformer::ops::register_autocast<c10::DispatchKey::AutocastCPU>(library);
}

TORCH_LIBRARY_IMPL(satformer, AutocastCUDA, library) {
  satformer::ops::register_autocast<c10::DispatchKey::AutocastCUDA>(library);
}
