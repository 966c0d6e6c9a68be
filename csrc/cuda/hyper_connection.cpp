// CUDA: checks, output tensors and stream; the kernels are in hyper_connection.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/from_tensor.h"
#include "csrc/cuda/hyper_connection_launch.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/hyper_connection_checks.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops::cuda {
namespace {

// [B, T, d], beside streams [B, T, n, d].
Source rows_source_of(const at::Tensor& x) { return {x.const_data_ptr(), {x.stride(0), x.stride(1), 0}}; }

HyperConnectionLaunch launch_of(const HyperConnectionArguments& a, const HyperConnectionParameters& p) {
  HyperConnectionLaunch result{};
  result.sizes = sizes_of(a.streams);
  result.dtype = dtype_of(a.streams);
  result.streams = source_of(a.streams);
  result.static_alpha = floats_of(p.static_alpha);
  result.static_beta = floats_of(p.static_beta);
  result.projections = floats_of(p.projections);
  result.offsets = floats_of(p.offsets);
  result.means = floats_of(p.means);
  result.alpha_scale = floats_of(p.alpha_scale);
  result.beta_scale = floats_of(p.beta_scale);
  result.norm_eps = static_cast<float>(a.norm_eps);
  result.layer_norm = a.dynamic() && a.layer_norm();
  result.use_tanh = a.use_tanh;
  return result;
}

HyperConnectionRead hyper_connection_read_cuda(const HyperConnectionArguments& a) {
  check_hyper_connection_read("hyper_connection_read", a);
  const c10::cuda::CUDAGuard device(a.streams.device());
  const HyperConnectionParameters parameters(a);
  HyperConnectionRead result = outputs_of_hyper_connection_read(a);
  const auto& [input, mixed, beta, kept] = result;
  C10_CUDA_CHECK(launch_read({launch_of(a, parameters), input.mutable_data_ptr(), mixed.mutable_data_ptr(),
                              beta.mutable_data_ptr<float>(), kept.mutable_data_ptr<float>()},
                             c10::cuda::getCurrentCUDAStream()));
  return result;
}

HyperConnectionGradients hyper_connection_read_backward_cuda(const HyperConnectionReadGradients& grads,
                                                             const HyperConnectionArguments& a,
                                                             const at::Tensor& kept) {
  const char* op = "hyper_connection_read_backward";
  check_hyper_connection_read_backward(op, grads, a, kept);
  const c10::cuda::CUDAGuard device(a.streams.device());
  const HyperConnectionParameters parameters(a);
  const at::Tensor input_rows = contiguous_rows(grads.input), mixed_rows = contiguous_rows(grads.mixed),
                   betas = grads.beta.contiguous(), contiguous_kept = kept.contiguous();
  const at::Tensor grad_streams = at::empty(a.streams.sizes(), a.streams.options());
  const at::TensorOptions floats_like = a.streams.options().dtype(at::kFloat);
  const std::int64_t n = a.streams.size(2), d = a.streams.size(3), count = hyper_connection_sums(n, d, a.dynamic());
  const std::int64_t chunks = read_backward_chunks(a.streams.size(0) * a.streams.size(1));
  // Column sums stay in a block's shared memory, 227 KB less what the coefficients need.
  TORCH_CHECK(!a.dynamic() || (n + 2) * d <= 51200, op, ": (n + 2) * d must be at most 51200 on CUDA, got n ", n,
              " and d ", d);
  const at::Tensor sums = at::empty({count}, floats_like), partials = at::empty({chunks, count}, floats_like);
  C10_CUDA_CHECK(launch_read_backward({launch_of(a, parameters), rows_source_of(input_rows), source_of(mixed_rows),
                                       floats_of(betas), floats_of(contiguous_kept), grad_streams.mutable_data_ptr(),
                                       sums.mutable_data_ptr<float>(), partials.mutable_data_ptr<float>()},
                                      c10::cuda::getCurrentCUDAStream()));
  return hyper_connection_gradients(grad_streams, sums, a);
}

void write(const at::Tensor& result, const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  const at::Tensor betas = beta.to(at::kFloat).contiguous(), outs = contiguous_rows(out.to(mixed.scalar_type()));
  C10_CUDA_CHECK(launch_write({sizes_of(mixed), dtype_of(mixed), result.mutable_data_ptr(), strides_of(result),
                               source_of(mixed), rows_source_of(outs), floats_of(betas)},
                              c10::cuda::getCurrentCUDAStream()));
}

at::Tensor hyper_connection_write_cuda(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_hyper_connection_write(mixed, beta, out, /*in_place=*/false);
  const c10::cuda::CUDAGuard device(mixed.device());
  at::Tensor result = at::empty(mixed.sizes(), mixed.options());
  write(result, mixed, beta, out);
  return result;
}

void hyper_connection_write_in_place_cuda(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_hyper_connection_write(mixed, beta, out, /*in_place=*/true);
  const c10::cuda::CUDAGuard device(mixed.device());
  write(mixed, mixed, beta, out);
}

std::tuple<at::Tensor, at::Tensor> hyper_connection_write_backward_cuda(const at::Tensor& grad, const at::Tensor& beta,
                                                                        const at::Tensor& out) {
  check_hyper_connection_write_backward(grad, beta, out);
  const c10::cuda::CUDAGuard device(grad.device());
  const at::Tensor rows = contiguous_rows(grad), betas = beta.to(at::kFloat).contiguous(),
                   outs = contiguous_rows(out.to(grad.scalar_type()));
  const at::Tensor grad_beta = at::empty(beta.sizes(), betas.options());
  const at::Tensor grad_out = at::empty(out.sizes(), outs.options());
  C10_CUDA_CHECK(
      launch_write_backward({sizes_of(rows), dtype_of(rows), source_of(rows), rows_source_of(outs), floats_of(betas),
                             grad_beta.mutable_data_ptr<float>(), grad_out.mutable_data_ptr()},
                            c10::cuda::getCurrentCUDAStream()));
  return {grad_beta.to(beta.scalar_type()), grad_out.to(out.scalar_type())};
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"hyper_connection_read", &cuda::hyper_connection_read_cuda>(library);
  implement<"hyper_connection_read_backward", &cuda::hyper_connection_read_backward_cuda>(library);
  implement<"hyper_connection_write", &cuda::hyper_connection_write_cuda>(library);
  implement<"hyper_connection_write_", &cuda::hyper_connection_write_in_place_cuda>(library);
  implement<"hyper_connection_write_backward", &cuda::hyper_connection_write_backward_cuda>(library);
}
