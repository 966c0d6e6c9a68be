// CUDA: checks, output tensors and stream; the kernels are in depth_weighted_sum.cu.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/depth_weighted_sum_launch.h"
#include "csrc/cuda/from_tensor.h"
#include "csrc/ops/depth_weighted_sum_checks.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/row_arguments.h"

namespace satformer::ops::cuda {
namespace {

ReadRows read_rows(const at::Tensor& x) { return {x.const_data_ptr(), x.stride(0), x.stride(1)}; }

// Past the last tensor of a list the tables stay null.
void set_pointers(const float** table, const Tensors& list) {
  for (std::size_t i = 0; i < list.size(); ++i) table[i] = list[i].const_data_ptr<float>();
}

// `parameters` must live until the launch.
DepthSumLaunch launch_of(const char* op, const DepthSum& a, const DepthSumParameters& parameters) {
  TORCH_CHECK(a.sources.size() <= kMaxSources, op, ": sources must hold at most ", kMaxSources,
              " tensors on CUDA, got ", a.sources.size());
  TORCH_CHECK(ways(a) <= kMaxWays, op, ": weights must have at most ", kMaxWays, " ways on CUDA, got ", ways(a));
  const at::Tensor& first = a.sources[0];
  DepthSumLaunch result{};
  result.B = first.size(0);
  result.T = first.size(1);
  result.d = first.size(2);
  result.sources = static_cast<int>(a.sources.size());
  result.ways = static_cast<int>(ways(a));
  result.dtype = dtype_of(first);
  result.weights_per_token = has_weights_per_token(a);
  result.source_norms = !a.source_norm_weights.empty();
  result.output_norms = !a.output_norm_weights.empty();
  result.output_norm_eps = static_cast<float>(a.output_norm_eps);
  result.weights = parameters.weights.const_data_ptr<float>();
  if (given(a.base)) result.base = read_rows(*a.base);
  for (std::size_t j = 0; j < a.sources.size(); ++j) result.source[j] = read_rows(a.sources[j]);
  set_pointers(result.norm_weights, parameters.norm_weights);
  set_pointers(result.inverse_rms, parameters.inverse_rms);
  set_pointers(result.output_norm_weights, parameters.output_norm_weights);
  return result;
}

Tensors depth_weighted_sum_cuda(const DepthSum& a) {
  const char* op = "depth_weighted_sum";
  check_depth_weighted_sum(op, a);
  const c10::cuda::CUDAGuard device(a.sources[0].device());
  const DepthSumParameters parameters(a);
  const DepthSumLaunch arguments = launch_of(op, a, parameters);
  Tensors out = outputs_of_depth_weighted_sum(a);
  DepthSumOutputsLaunch outputs{};
  for (std::size_t c = 0; c < out.size(); ++c) outputs.out[c] = out[c].mutable_data_ptr();
  C10_CUDA_CHECK(launch_depth_sum(arguments, outputs, c10::cuda::getCurrentCUDAStream()));
  return out;
}

// grad_sources: the tensors that are added to, or empty.
DepthSumGradients backward(const char* op, at::TensorList grad_sources, at::TensorList grads, const DepthSum& a,
                           const DepthSumMask& mask) {
  check_depth_weighted_sum_backward(op, grads, a);
  const c10::cuda::CUDAGuard device(a.sources[0].device());
  const DepthSumParameters parameters(a);
  const DepthSumLaunch arguments = launch_of(op, a, parameters);
  const bool adds = !grad_sources.empty();
  const DepthSumMask wanted = wanted_gradients(mask, a);
  const DepthSumBackwardOutputs out(a, wanted, /*with_sources=*/!adds);
  DepthSumBackwardLaunch gradients{};
  Tensors contiguous_grads;
  for (std::size_t c = 0; c < grads.size(); ++c) {
    contiguous_grads.push_back(contiguous_rows(grads[c]));
    gradients.grads[c] = read_rows(contiguous_grads.back());
  }
  gradients.writes_sources = wanted[0];
  gradients.add_to_sources = adds;
  const at::TensorList to = adds ? grad_sources : at::TensorList(out.sources);
  for (std::size_t j = 0; wanted[0] && j < to.size(); ++j) {
    gradients.sources[j] = {to[j].mutable_data_ptr(), to[j].stride(0), to[j].stride(1)};
  }
  gradients.base = mutable_data_of(out.base);
  gradients.weights = mutable_floats_of(out.weights);
  gradients.inverse_rms = mutable_floats_of(out.inverse_rms);
  gradients.norm_weights = mutable_floats_of(out.norm_weights);
  gradients.output_norm_weights = mutable_floats_of(out.output_norm_weights);
  const std::int64_t tokens = arguments.B * arguments.T, chunks = depth_sum_chunks(tokens), S = arguments.sources,
                     C = arguments.ways;
  const auto scratch = [&](bool needed, std::int64_t count) {
    return needed ? at::empty({count}, a.sources[0].options().dtype(at::kFloat)) : at::Tensor();
  };
  const at::Tensor weight_partials = scratch(wanted[1] && !has_weights_per_token(a), chunks * C * S);
  const at::Tensor norm_partials = scratch(wanted[3] || wanted[5], chunks * (S + C) * arguments.d);
  const at::Tensor statistics = scratch(arguments.output_norms, tokens * C * 2);
  gradients.weight_partials = mutable_floats_of(weight_partials);
  gradients.norm_partials = mutable_floats_of(norm_partials);
  gradients.output_statistics = mutable_floats_of(statistics);
  C10_CUDA_CHECK(launch_depth_sum_backward(arguments, gradients, c10::cuda::getCurrentCUDAStream()));
  return out.gradients(a);
}

DepthSumGradients depth_weighted_sum_backward_cuda(at::TensorList grads, const DepthSum& a, DepthSumMask mask) {
  return backward("depth_weighted_sum_backward", {}, grads, a, mask);
}

DepthSumGradients depth_weighted_sum_backward_add_cuda(at::TensorList grad_sources, at::TensorList grads,
                                                       const DepthSum& a, DepthSumMask mask) {
  const char* op = "depth_weighted_sum_backward_";
  check_depth_weighted_sum_backward(op, grads, a);
  check_grad_sources(op, grad_sources, grads, a);
  return backward(op, grad_sources, grads, a, mask);
}

InverseRmsLaunch inverse_launch(const at::Tensor& matrix, const at::Tensor& inverse) {
  InverseRmsLaunch result{};
  result.rows = matrix.size(0);
  result.d = matrix.size(1);
  result.stride = matrix.stride(0);
  result.dtype = dtype_of(matrix);
  result.x = matrix.const_data_ptr();
  result.inverse = mutable_floats_of(inverse);
  return result;
}

// x as [rows, d].
at::Tensor as_matrix(const at::Tensor& x, std::int64_t rows) { return contiguous_rows(x.reshape({rows, x.size(-1)})); }

at::Tensor inverse_rms_cuda(const at::Tensor& x, double eps) {
  check_inverse_rms(x, eps);
  const c10::cuda::CUDAGuard device(x.device());
  at::Tensor out = at::empty(x.sizes().slice(0, x.dim() - 1), x.options().dtype(at::kFloat));
  const at::Tensor matrix = as_matrix(x, out.numel());
  InverseRmsLaunch arguments = inverse_launch(matrix, out);
  arguments.eps = static_cast<float>(eps);
  C10_CUDA_CHECK(launch_inverse_rms(arguments, c10::cuda::getCurrentCUDAStream()));
  return out;
}

at::Tensor inverse_rms_backward_cuda(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& inverse) {
  check_inverse_rms_backward(grad, x, inverse);
  const c10::cuda::CUDAGuard device(x.device());
  at::Tensor out = at::empty(x.sizes(), x.options());
  const at::Tensor matrix = as_matrix(x, grad.numel()), inverses = inverse.contiguous(), grads = grad.contiguous();
  InverseRmsLaunch arguments = inverse_launch(matrix, inverses);
  arguments.grad = floats_of(grads);
  arguments.grad_x = out.mutable_data_ptr();
  C10_CUDA_CHECK(launch_inverse_rms_backward(arguments, c10::cuda::getCurrentCUDAStream()));
  return out;
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"depth_weighted_sum", &cuda::depth_weighted_sum_cuda>(library);
  implement<"depth_weighted_sum_backward", &cuda::depth_weighted_sum_backward_cuda>(library);
  implement<"depth_weighted_sum_backward_", &cuda::depth_weighted_sum_backward_add_cuda>(library);
  implement<"inverse_rms", &cuda::inverse_rms_cuda>(library);
  implement<"inverse_rms_backward", &cuda::inverse_rms_backward_cuda>(library);
}
