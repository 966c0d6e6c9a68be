// CUDA: checks, output tensors and stream; the kernels are in hyper_connection.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/hyper_connection_launch.h"
#include "csrc/ops/hyper_connection_arguments.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops::cuda {
namespace {

DType dtype_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kHalf:
      return DType::kFloat16;
    default:
      return DType::kFloat32;
  }
}

Sizes sizes_of(const at::Tensor& streams) {
  return {streams.size(0), streams.size(1), streams.size(2), streams.size(3)};
}
// [B, T, n, d] or [B, T, d].
Strides strides_of(const at::Tensor& x) { return {x.stride(0), x.stride(1), x.dim() == 4 ? x.stride(2) : 0}; }
StreamRows rows_of(const at::Tensor& x) { return {x.const_data_ptr(), strides_of(x)}; }

const float* floats(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }

HyperConnectionLaunch launch_of(const HyperConnectionArguments& a, const HyperConnectionParameters& p) {
  HyperConnectionLaunch result{};
  result.sizes = sizes_of(a.streams);
  result.dtype = dtype_of(a.streams);
  result.streams = rows_of(a.streams);
  result.static_alpha = floats(p.static_alpha);
  result.static_beta = floats(p.static_beta);
  result.projections = floats(p.projections);
  result.offsets = floats(p.offsets);
  result.means = floats(p.means);
  result.alpha_scale = floats(p.alpha_scale);
  result.beta_scale = floats(p.beta_scale);
  result.norm_eps = static_cast<float>(a.norm_eps);
  result.layer_norm = a.dynamic() && a.layer_norm();
  result.use_tanh = a.use_tanh;
  return result;
}

ReadTuple read_cuda(const at::Tensor& streams, const at::Tensor& static_alpha, const at::Tensor& static_beta,
                    const OptionalTensor& norm_weight, const OptionalTensor& norm_bias,
                    const OptionalTensor& dynamic_alpha_proj, const OptionalTensor& dynamic_beta_proj,
                    const OptionalTensor& dynamic_alpha_scale, const OptionalTensor& dynamic_beta_scale,
                    double norm_eps, bool use_tanh) {
  const HyperConnectionArguments a{
      streams,           static_alpha,        static_beta,        norm_weight, norm_bias, dynamic_alpha_proj,
      dynamic_beta_proj, dynamic_alpha_scale, dynamic_beta_scale, norm_eps,    use_tanh};
  check_read("hyper_connection_read", a);
  const c10::cuda::CUDAGuard device(streams.device());
  const HyperConnectionParameters parameters(a);
  ReadTuple result = empty_read(a);
  const auto& [input, mixed, beta, kept] = result;
  C10_CUDA_CHECK(launch_read({launch_of(a, parameters), input.mutable_data_ptr(), mixed.mutable_data_ptr(),
                              beta.mutable_data_ptr<float>(), kept.mutable_data_ptr<float>()},
                             c10::cuda::getCurrentCUDAStream()));
  return result;
}

ReadGradientTuple read_backward_cuda(const at::Tensor& grad_input, const at::Tensor& grad_mixed,
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
  const char* op = "hyper_connection_read_backward";
  check_read_backward(op, grad_input, grad_mixed, grad_beta, a, kept);
  const c10::cuda::CUDAGuard device(streams.device());
  const HyperConnectionParameters parameters(a);
  const at::Tensor input_rows = contiguous_rows(grad_input), mixed_rows = contiguous_rows(grad_mixed),
                   betas = grad_beta.contiguous(), contiguous_kept = kept.contiguous();
  const at::Tensor grad_streams = at::empty(streams.sizes(), streams.options());
  const at::TensorOptions floats_like = streams.options().dtype(at::kFloat);
  const std::int64_t n = streams.size(2), d = streams.size(3), count = hyper_connection_sums(n, d, a.dynamic());
  const std::int64_t chunks = read_backward_chunks(streams.size(0) * streams.size(1));
  // Column sums stay in a block's shared memory, 227 KB less what the coefficients need.
  TORCH_CHECK(!a.dynamic() || (n + 2) * d <= 51200, op, ": (n + 2) * d must be at most 51200 on CUDA, got n ", n,
              " and d ", d);
  const at::Tensor sums = at::empty({count}, floats_like), partials = at::empty({chunks, count}, floats_like);
  C10_CUDA_CHECK(launch_read_backward(
      {launch_of(a, parameters), rows_of(input_rows), rows_of(mixed_rows), floats(betas), floats(contiguous_kept),
       grad_streams.mutable_data_ptr(), sums.mutable_data_ptr<float>(), partials.mutable_data_ptr<float>()},
      c10::cuda::getCurrentCUDAStream()));
  return gradients_of_sums(grad_streams, sums, a);
}

void write(const at::Tensor& result, const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  const at::Tensor betas = beta.to(at::kFloat).contiguous(), outs = contiguous_rows(out.to(mixed.scalar_type()));
  C10_CUDA_CHECK(launch_write({sizes_of(mixed), dtype_of(mixed), result.mutable_data_ptr(), strides_of(result),
                               rows_of(mixed), rows_of(outs), floats(betas)},
                              c10::cuda::getCurrentCUDAStream()));
}

at::Tensor write_cuda(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_write(mixed, beta, out, /*in_place=*/false);
  const c10::cuda::CUDAGuard device(mixed.device());
  at::Tensor result = at::empty(mixed.sizes(), mixed.options());
  write(result, mixed, beta, out);
  return result;
}

void write_in_place_cuda(const at::Tensor& mixed, const at::Tensor& beta, const at::Tensor& out) {
  check_write(mixed, beta, out, /*in_place=*/true);
  const c10::cuda::CUDAGuard device(mixed.device());
  write(mixed, mixed, beta, out);
}

WriteGradientTuple write_backward_cuda(const at::Tensor& grad, const at::Tensor& beta, const at::Tensor& out) {
  check_write_backward(grad, beta, out);
  const c10::cuda::CUDAGuard device(grad.device());
  const at::Tensor rows = contiguous_rows(grad), betas = beta.to(at::kFloat).contiguous(),
                   outs = contiguous_rows(out.to(grad.scalar_type()));
  const at::Tensor grad_beta = at::empty(beta.sizes(), betas.options());
  const at::Tensor grad_out = at::empty(out.sizes(), outs.options());
  C10_CUDA_CHECK(launch_write_backward({sizes_of(rows), dtype_of(rows), rows_of(rows), rows_of(outs), floats(betas),
                                        grad_beta.mutable_data_ptr<float>(), grad_out.mutable_data_ptr()},
                                       c10::cuda::getCurrentCUDAStream()));
  return {grad_beta.to(beta.scalar_type()), grad_out.to(out.scalar_type())};
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  library.impl("hyper_connection_read", &satformer::ops::cuda::read_cuda);
  library.impl("hyper_connection_read_backward", &satformer::ops::cuda::read_backward_cuda);
  library.impl("hyper_connection_write", &satformer::ops::cuda::write_cuda);
  library.impl("hyper_connection_write_", &satformer::ops::cuda::write_in_place_cuda);
  library.impl("hyper_connection_write_backward", &satformer::ops::cuda::write_backward_cuda);
}
