// Autograd: the read saves the streams, its parameters and `kept` (n (n + 4) numbers a token), the write beta and out,
// neither the mixed streams. The backwards are operators, which are not differentiable themselves.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "csrc/ops/dispatch.h"
#include "csrc/ops/hyper_connection_checks.h"

namespace satformer::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

HyperConnectionRead call_hyper_connection_read(const HyperConnectionArguments& a) {
  static const Operator<decltype(call_hyper_connection_read)> op("satformer::hyper_connection_read");
  return op(a);
}

HyperConnectionGradients call_hyper_connection_read_backward(const HyperConnectionReadGradients& grads,
                                                             const HyperConnectionArguments& a,
                                                             const at::Tensor& kept) {
  static const Operator<decltype(call_hyper_connection_read_backward)> op("satformer::hyper_connection_read_backward");
  return op(grads, a, kept);
}

void call_hyper_connection_write_in_place(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  static const Operator<decltype(call_hyper_connection_write_in_place)> op("satformer::hyper_connection_write_");
  op(mixed, beta, out);
}

struct Read : torch::autograd::Function<Read> {
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* context, const HyperConnectionArguments& a,
                               at::TensorList /*tensors*/) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const HyperConnectionRead out = call_hyper_connection_read(a);
    save_fields(context, a, a, {out.kept});
    context->mark_non_differentiable({out.kept});
    return {out.input, out.mixed, out.beta, out.kept};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    variable_list more;
    const auto a = saved_fields<HyperConnectionArguments>(context, &more);
    const HyperConnectionGradients out =
        call_hyper_connection_read_backward({grads[0], grads[1], grads[2]}, a, more[0]);
    HyperConnectionArguments to;
    to.streams = out.streams;
    to.static_alpha = out.static_alpha, to.static_beta = out.static_beta;
    to.norm_weight = out.norm_weight, to.norm_bias = out.norm_bias;
    to.dynamic_alpha_proj = out.dynamic_alpha_proj, to.dynamic_beta_proj = out.dynamic_beta_proj;
    to.dynamic_alpha_scale = out.dynamic_alpha_scale, to.dynamic_beta_scale = out.dynamic_beta_scale;
    return gradients_for(context, to);
  }
};

// The gradient of mixed is the result's own.
variable_list backward_of_write(AutogradContext* context, const variable_list& grads) {
  const variable_list saved = context->get_saved_variables();
  if (!context->needs_input_grad(1) && !context->needs_input_grad(2)) return {grads[0], {}, {}};
  auto [beta, out] = hyper_connection_write_backward(grads[0], saved[0], saved[1]);
  return {grads[0], beta, out};
}

struct Write : torch::autograd::Function<Write> {
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& mixed, const at::Tensor& beta,
                            const at::Tensor& out) {
    const at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward({beta, out});
    return hyper_connection_write(mixed, beta, out);
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
    call_hyper_connection_write_in_place(mixed, beta, out);
    context->save_for_backward({beta, out});
    context->mark_dirty({mixed});
    return mixed;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    return backward_of_write(context, grads);
  }
};

HyperConnectionRead hyper_connection_read_autograd(const HyperConnectionArguments& a) {
  const std::vector<at::Tensor> tensors = tensors_of(a);
  const variable_list out = Read::apply(a, at::TensorList(tensors));
  return {out[0], out[1], out[2], out[3]};
}

at::Tensor hyper_connection_write_autograd(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  return Write::apply(mixed, beta, out);
}

void hyper_connection_write_in_place_autograd(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  // Before anything is written: apply() would refuse a leaf only after its values are gone.
  torch::autograd::check_inplace(mixed, mixed.requires_grad() || beta.requires_grad() || out.requires_grad());
  WriteInPlace::apply(mixed, beta, out);
}

void check_not_differentiated(const char* op, bool requires_grad) {
  TORCH_CHECK_NOT_IMPLEMENTED(!requires_grad || !at::GradMode::is_enabled(), op,
                              ": has no derivative of its own; for second derivatives use the composite reference");
}

HyperConnectionGradients hyper_connection_read_backward_autograd(const HyperConnectionReadGradients& grads,
                                                                 const HyperConnectionArguments& a,
                                                                 const at::Tensor& kept) {
  check_not_differentiated("hyper_connection_read_backward", requires_grad(grads) || requires_grad(a));
  const at::AutoDispatchBelowADInplaceOrView below;
  return call_hyper_connection_read_backward(grads, a, kept);
}

std::tuple<at::Tensor, at::Tensor> hyper_connection_write_backward_autograd(const at::Tensor& grad,
                                                                            const at::Tensor& beta,
                                                                            const at::Tensor& out) {
  check_not_differentiated("hyper_connection_write_backward",
                           grad.requires_grad() || beta.requires_grad() || out.requires_grad());
  const at::AutoDispatchBelowADInplaceOrView below;
  return hyper_connection_write_backward(grad, beta, out);
}

// Outside autograd (inference mode on ordinary tensors) the version counter must still see the write.
void hyper_connection_write_in_place_version(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    call_hyper_connection_write_in_place(mixed, beta, out);
  }
  torch::autograd::impl::bump_version(mixed);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;
  implement<"hyper_connection_read", &hyper_connection_read_autograd>(library);
  implement<"hyper_connection_read_backward", &hyper_connection_read_backward_autograd>(library);
  implement<"hyper_connection_write", &hyper_connection_write_autograd>(library);
  implement<"hyper_connection_write_", &hyper_connection_write_in_place_autograd>(library);
  implement<"hyper_connection_write_backward", &hyper_connection_write_backward_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  using namespace satformer::ops;
  implement<"hyper_connection_write_", &hyper_connection_write_in_place_version>(library);
}
