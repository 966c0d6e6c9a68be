// Autograd: the read saves the streams, its parameters and `kept` (n (n + 4) numbers a token), the write beta and out,
// neither the mixed streams. The backwards are operators, which are not differentiable themselves.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/hyper_connection_calls.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

OptionalTensor optional(const at::Tensor& x) { return x.defined() ? OptionalTensor(x) : std::nullopt; }

struct Read : torch::autograd::Function<Read> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const at::Tensor& streams, const at::Tensor& static_alpha,
                               const at::Tensor& static_beta, const OptionalTensor& norm_weight,
                               const OptionalTensor& norm_bias, const OptionalTensor& dynamic_alpha_proj,
                               const OptionalTensor& dynamic_beta_proj, const OptionalTensor& dynamic_alpha_scale,
                               const OptionalTensor& dynamic_beta_scale, double norm_eps, bool use_tanh) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [input, mixed, beta, kept] =
        hyper_read_operator().call(streams, static_alpha, static_beta, norm_weight, norm_bias, dynamic_alpha_proj,
                                   dynamic_beta_proj, dynamic_alpha_scale, dynamic_beta_scale, norm_eps, use_tanh);
    const auto tensor = [](const OptionalTensor& x) { return x.value_or(at::Tensor()); };
    context->save_for_backward({streams, static_alpha, static_beta, tensor(norm_weight), tensor(norm_bias),
                                tensor(dynamic_alpha_proj), tensor(dynamic_beta_proj), tensor(dynamic_alpha_scale),
                                tensor(dynamic_beta_scale), kept});
    context->saved_data["norm_eps"] = norm_eps;
    context->saved_data["use_tanh"] = use_tanh;
    context->mark_non_differentiable({kept});
    return {input, mixed, beta, kept};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list s = context->get_saved_variables();
    auto [streams, static_alpha, static_beta, norm_weight, norm_bias, alpha_proj, beta_proj, alpha_scale, beta_scale] =
        hyper_read_backward_operator().call(grads[0], grads[1], grads[2], s[0], s[1], s[2], optional(s[3]),
                                            optional(s[4]), optional(s[5]), optional(s[6]), optional(s[7]),
                                            optional(s[8]), context->saved_data["norm_eps"].toDouble(),
                                            context->saved_data["use_tanh"].toBool(), s[9]);
    return {streams,   static_alpha, static_beta, norm_weight, norm_bias, alpha_proj,
            beta_proj, alpha_scale,  beta_scale,  {},          {}};
  }
};

// The gradient of mixed is the result's own.
variable_list backward_of_write(AutogradContext* context, const variable_list& grads) {
  const variable_list saved = context->get_saved_variables();
  if (!context->needs_input_grad(1) && !context->needs_input_grad(2)) return {grads[0], {}, {}};
  auto [beta, out] = hyper_write_backward_operator().call(grads[0], saved[0], saved[1]);
  return {grads[0], beta, out};
}

struct Write : torch::autograd::Function<Write> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& mixed, const at::Tensor& beta,
                            const at::Tensor& out) {
    const at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward({beta, out});
    return hyper_write_operator().call(mixed, beta, out);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return backward_of_write(context, grads);
  }
};

struct WriteInPlace : torch::autograd::Function<WriteInPlace> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& mixed, const at::Tensor& beta,
                            const at::Tensor& out) {
    const at::AutoDispatchBelowADInplaceOrView below;
    hyper_write_in_place_operator().call(mixed, beta, out);
    context->save_for_backward({beta, out});
    context->mark_dirty({mixed});
    return mixed;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return backward_of_write(context, grads);
  }
};

ReadTuple read_autograd(const at::Tensor& streams, const at::Tensor& static_alpha, const at::Tensor& static_beta,
                        const OptionalTensor& norm_weight, const OptionalTensor& norm_bias,
                        const OptionalTensor& dynamic_alpha_proj, const OptionalTensor& dynamic_beta_proj,
                        const OptionalTensor& dynamic_alpha_scale, const OptionalTensor& dynamic_beta_scale,
                        double norm_eps, bool use_tanh) {
  const variable_list out = Read::apply(streams, static_alpha, static_beta, norm_weight, norm_bias, dynamic_alpha_proj,
                                        dynamic_beta_proj, dynamic_alpha_scale, dynamic_beta_scale, norm_eps, use_tanh);
  return {out[0], out[1], out[2], out[3]};
}

at::Tensor write_autograd(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  return Write::apply(mixed, beta, out);
}

void write_in_place_autograd(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  // Before anything is written: apply() would refuse a leaf only after its values are gone.
  torch::autograd::check_inplace(mixed, mixed.requires_grad() || beta.requires_grad() || out.requires_grad());
  WriteInPlace::apply(mixed, beta, out);
}

void check_not_differentiated(const char* op, std::initializer_list<OptionalTensor> tensors) {
  if (!at::GradMode::is_enabled()) return;
  for (const OptionalTensor& x : tensors) {
    TORCH_CHECK_NOT_IMPLEMENTED(!x.has_value() || !x->defined() || !x->requires_grad(), op,
                                ": has no derivative of its own; for second derivatives use the composite reference");
  }
}

ReadGradientTuple read_backward_autograd(
    const at::Tensor& grad_input, const at::Tensor& grad_mixed, const at::Tensor& grad_beta, const at::Tensor& streams,
    const at::Tensor& static_alpha, const at::Tensor& static_beta, const OptionalTensor& norm_weight,
    const OptionalTensor& norm_bias, const OptionalTensor& dynamic_alpha_proj, const OptionalTensor& dynamic_beta_proj,
    const OptionalTensor& dynamic_alpha_scale, const OptionalTensor& dynamic_beta_scale, double norm_eps, bool use_tanh,
    const at::Tensor& kept) {
  check_not_differentiated("hyper_connection_read_backward",
                           {grad_input, grad_mixed, grad_beta, streams, static_alpha, static_beta, norm_weight,
                            norm_bias, dynamic_alpha_proj, dynamic_beta_proj, dynamic_alpha_scale, dynamic_beta_scale});
  const at::AutoDispatchBelowADInplaceOrView below;
  return hyper_read_backward_operator().call(grad_input, grad_mixed, grad_beta, streams, static_alpha, static_beta,
                                             norm_weight, norm_bias, dynamic_alpha_proj, dynamic_beta_proj,
                                             dynamic_alpha_scale, dynamic_beta_scale, norm_eps, use_tanh, kept);
}

WriteGradientTuple write_backward_autograd(const at::Tensor& grad, const at::Tensor& beta, const at::Tensor& out) {
  check_not_differentiated("hyper_connection_write_backward", {grad, beta, out});
  const at::AutoDispatchBelowADInplaceOrView below;
  return hyper_write_backward_operator().call(grad, beta, out);
}

// Outside autograd (inference mode on ordinary tensors) the version counter must still see the write.
void write_in_place_version(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    hyper_write_in_place_operator().call(mixed, beta, out);
  }
  torch::autograd::impl::bump_version(mixed);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  library.impl("hyper_connection_read", &satformer::ops::read_autograd);
  library.impl("hyper_connection_read_backward", &satformer::ops::read_backward_autograd);
  library.impl("hyper_connection_write", &satformer::ops::write_autograd);
  library.impl("hyper_connection_write_", &satformer::ops::write_in_place_autograd);
  library.impl("hyper_connection_write_backward", &satformer::ops::write_backward_autograd);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  library.impl("hyper_connection_write_", &satformer::ops::write_in_place_version);
}
