// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/ops/hyper_connection_arguments.h"

namespace satformer::ops {
namespace {

at::Tensor empty_like_symbolic(const at::Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); }

ReadTuple read_meta(const at::Tensor& streams, const at::Tensor& static_alpha, const at::Tensor& static_beta,
                    const OptionalTensor& norm_weight, const OptionalTensor& norm_bias,
                    const OptionalTensor& dynamic_alpha_proj, const OptionalTensor& dynamic_beta_proj,
                    const OptionalTensor& dynamic_alpha_scale, const OptionalTensor& dynamic_beta_scale,
                    double norm_eps, bool use_tanh) {
  const HyperConnectionArguments a{
      streams,           static_alpha,        static_beta,        norm_weight, norm_bias, dynamic_alpha_proj,
      dynamic_beta_proj, dynamic_alpha_scale, dynamic_beta_scale, norm_eps,    use_tanh};
  check_read("hyper_connection_read", a);
  return empty_read(a);
}

ReadGradientTuple read_backward_meta(const at::Tensor& grad_input, const at::Tensor& grad_mixed,
                                     const at::Tensor& grad_beta, const at::Tensor& streams,
                                     const at::Tensor& static_alpha, const at::Tensor& static_beta,
                                     const OptionalTensor& norm_weight, const OptionalTensor& norm_bias,
                                     const OptionalTensor& dynamic_alpha_proj, const OptionalTensor& dynamic_beta_proj,
                                     const OptionalTensor& dynamic_alpha_scale,
                                     const OptionalTensor& dynamic_beta_scale, double norm_eps, bool use_tanh,
                                     const at::Tensor& kept) {
  const HyperConnectionArguments a{
      streams,           static_alpha,        static_beta,        norm_weight, norm_bias, dynamic_alpha_proj,
      dynamic_beta_proj, dynamic_alpha_scale, dynamic_beta_scale, norm_eps,    use_tanh};
  check_read_backward("hyper_connection_read_backward", grad_input, grad_mixed, grad_beta, a, kept);
  const auto empty_if_given = [](const OptionalTensor& x) {
    return x.has_value() && x->defined() ? empty_like_symbolic(*x) : at::Tensor();
  };
  return {empty_like_symbolic(streams),      empty_like_symbolic(static_alpha),   empty_like_symbolic(static_beta),
          empty_if_given(norm_weight),       empty_if_given(norm_bias),           empty_if_given(dynamic_alpha_proj),
          empty_if_given(dynamic_beta_proj), empty_if_given(dynamic_alpha_scale), empty_if_given(dynamic_beta_scale)};
}

at::Tensor write_meta(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_write(mixed, beta, out, /*in_place=*/false);
  return empty_like_symbolic(mixed);
}

void write_in_place_meta(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_write(mixed, beta, out, /*in_place=*/true);
}

WriteGradientTuple write_backward_meta(const at::Tensor& grad, const at::Tensor& beta, const at::Tensor& out) {
  check_write_backward(grad, beta, out);
  return {empty_like_symbolic(beta), empty_like_symbolic(out)};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("hyper_connection_read", &satformer::ops::read_meta);
  library.impl("hyper_connection_read_backward", &satformer::ops::read_backward_meta);
  library.impl("hyper_connection_write", &satformer::ops::write_meta);
  library.impl("hyper_connection_write_", &satformer::ops::write_in_place_meta);
  library.impl("hyper_connection_write_backward", &satformer::ops::write_backward_meta);
}
