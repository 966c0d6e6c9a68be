// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "csrc/cpu/hyper_connection_kernel.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/hyper_connection_checks.h"
#include "csrc/ops/row_arguments.h"

namespace at::native {
DEFINE_DISPATCH(satformer_hyper_connection_read_stub);
DEFINE_DISPATCH(satformer_hyper_connection_read_backward_stub);
DEFINE_DISPATCH(satformer_hyper_connection_write_stub);
DEFINE_DISPATCH(satformer_hyper_connection_write_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

const void* data_or_null(const at::Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; }

ReadStreams read_streams(const at::Tensor& x) {
  return {x.const_data_ptr(), x.stride(0), x.stride(1), x.dim() == 4 ? x.stride(2) : 0};
}

HyperConnectionData data_of(const HyperConnectionArguments& a, const HyperConnectionParameters& p) {
  return {a.streams.size(0),
          a.streams.size(1),
          a.streams.size(2),
          a.streams.size(3),
          a.streams.scalar_type(),
          read_streams(a.streams),
          p.static_alpha.const_data_ptr(),
          p.static_beta.const_data_ptr(),
          data_or_null(p.projections),
          data_or_null(p.offsets),
          data_or_null(p.means),
          data_or_null(p.alpha_scale),
          data_or_null(p.beta_scale),
          a.norm_eps,
          a.dynamic() && a.layer_norm(),
          a.use_tanh};
}

HyperConnectionRead hyper_connection_read_cpu(const HyperConnectionArguments& a) {
  check_hyper_connection_read("hyper_connection_read", a);
  const HyperConnectionParameters parameters(a);
  HyperConnectionRead result = outputs_of_hyper_connection_read(a);
  const auto& [input, mixed, beta, kept] = result;
  at::native::satformer_hyper_connection_read_stub(
      at::kCPU, data_of(a, parameters),
      HyperConnectionOutputs{input.mutable_data_ptr(), mixed.mutable_data_ptr(), beta.mutable_data_ptr(),
                             kept.mutable_data_ptr()});
  return result;
}

HyperConnectionGradients hyper_connection_read_backward_cpu(const HyperConnectionReadGradients& grads,
                                                            const HyperConnectionArguments& a, const at::Tensor& kept) {
  check_hyper_connection_read_backward("hyper_connection_read_backward", grads, a, kept);
  const HyperConnectionParameters parameters(a);
  const at::Tensor input_rows = contiguous_rows(grads.input), mixed_rows = contiguous_rows(grads.mixed),
                   betas = grads.beta.contiguous(), contiguous_kept = kept.contiguous();
  const at::Tensor grad_streams = at::empty(a.streams.sizes(), a.streams.options());
  const at::Tensor sums = at::empty({hyper_connection_sums(a.streams.size(2), a.streams.size(3), a.dynamic())},
                                    a.streams.options().dtype(a.arithmetic()));
  at::native::satformer_hyper_connection_read_backward_stub(
      at::kCPU, data_of(a, parameters),
      HyperConnectionBackwardData{read_streams(input_rows), read_streams(mixed_rows), betas.const_data_ptr(),
                                  contiguous_kept.const_data_ptr(), grad_streams.mutable_data_ptr(),
                                  sums.mutable_data_ptr()});
  return hyper_connection_gradients(grad_streams, sums, a);
}

at::Tensor arithmetic_beta(const at::Tensor& beta, const at::Tensor& streams) {
  return beta.to(accumulate_dtype(streams)).contiguous();
}

at::Tensor hyper_connection_write_cpu(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_hyper_connection_write(mixed, beta, out, /*in_place=*/false);
  at::Tensor result = at::empty(mixed.sizes(), mixed.options());
  at::native::satformer_hyper_connection_write_stub(at::kCPU, result, mixed, arithmetic_beta(beta, mixed),
                                                    contiguous_rows(out.to(mixed.scalar_type())));
  return result;
}

void hyper_connection_write_in_place_cpu(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_hyper_connection_write(mixed, beta, out, /*in_place=*/true);
  at::native::satformer_hyper_connection_write_stub(at::kCPU, mixed, mixed, arithmetic_beta(beta, mixed),
                                                    contiguous_rows(out.to(mixed.scalar_type())));
}

std::tuple<at::Tensor, at::Tensor> hyper_connection_write_backward_cpu(const at::Tensor& grad, const at::Tensor& beta,
                                                                       const at::Tensor& out) {
  check_hyper_connection_write_backward(grad, beta, out);
  const at::Tensor factors = arithmetic_beta(beta, grad);
  const at::Tensor grad_beta = at::empty(beta.sizes(), factors.options());
  const at::Tensor grad_out = at::empty(out.sizes(), out.options().dtype(grad.scalar_type()));
  at::native::satformer_hyper_connection_write_backward_stub(at::kCPU, grad_beta, grad_out, contiguous_rows(grad),
                                                             factors, contiguous_rows(out.to(grad.scalar_type())));
  return {grad_beta.to(beta.scalar_type()), grad_out.to(out.scalar_type())};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"hyper_connection_read", &hyper_connection_read_cpu>(library);
  implement<"hyper_connection_read_backward", &hyper_connection_read_backward_cpu>(library);
  implement<"hyper_connection_write", &hyper_connection_write_cpu>(library);
  implement<"hyper_connection_write_", &hyper_connection_write_in_place_cpu>(library);
  implement<"hyper_connection_write_backward", &hyper_connection_write_backward_cpu>(library);
}
