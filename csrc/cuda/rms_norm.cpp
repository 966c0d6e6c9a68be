// CUDA: checks, output tensors and stream; the kernels are in rms_norm.cu. Rows longer than a block can hold take the
// composite definition.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <limits>

#include "csrc/cuda/from_tensor.h"
#include "csrc/cuda/rms_norm_launch.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/rms_norm_checks.h"
#include "csrc/ops/rms_norm_reference.h"

namespace satformer::ops::cuda {
namespace {

bool fits(const at::Tensor& x) { return x.size(-1) <= kLongestNormRow; }

// given_inverse: rms_norm_apply's; else the kernel writes inverse_rms.
void norm(const NormRows& rows, bool given_inverse) {
  if (rows.x.size(1) == 0) {
    if (!given_inverse) rows.inverse_rms.fill_(std::numeric_limits<float>::quiet_NaN());  // the mean of nothing
    return;
  }
  NormArguments a{};
  a.rows = rows.x.size(0);
  a.n = rows.x.size(1);
  a.x = input_of(rows.x);
  a.residual = input_of(rows.residual);
  a.weight = input_of(rows.weight);
  a.eps = static_cast<float>(rows.eps);
  a.sum = output_of(rows.sum);
  a.y = output_of(rows.y);
  if (given_inverse) {
    a.given_inverse = rows.inverse_rms.const_data_ptr<float>();
  } else {
    a.inverse_rms = rows.inverse_rms.mutable_data_ptr<float>();
  }
  C10_CUDA_CHECK(launch_norm(a, c10::cuda::getCurrentCUDAStream()));
}

std::tuple<at::Tensor, at::Tensor> rms_norm_cuda(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                 std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = outputs_of_rms_norm(x, std::nullopt, weight, eps, out_dtype);
  const c10::cuda::CUDAGuard device(x.device());
  if (!fits(x)) return rms_norm_reference(x, weight, eps, out_dtype);
  norm(norm_rows(x, std::nullopt, weight, eps, out), /*given_inverse=*/false);
  return {out.y, out.inverse_rms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_cuda(const at::Tensor& x, const at::Tensor& residual,
                                                                 const at::Tensor& weight, double eps,
                                                                 std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = outputs_of_rms_norm(x, residual, weight, eps, out_dtype);
  const c10::cuda::CUDAGuard device(x.device());
  if (!fits(x)) return add_rms_norm_reference(x, residual, weight, eps, out_dtype);
  norm(norm_rows(x, residual, weight, eps, out), /*given_inverse=*/false);
  return {out.sum, out.y, out.inverse_rms};
}

at::Tensor rms_norm_apply_cuda(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                               std::optional<at::ScalarType> out_dtype) {
  at::Tensor y = outputs_of_rms_norm_apply(sum, weight, inverse_rms, out_dtype);
  const c10::cuda::CUDAGuard device(sum.device());
  if (!fits(sum)) return rms_norm_apply_reference(sum, weight, inverse_rms, out_dtype);
  norm(norm_rows(sum, std::nullopt, weight, /*eps=*/0, {{}, y, inverse_rms}), /*given_inverse=*/true);
  return y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward_cuda(const at::Tensor& grad_y,
                                                                      const std::optional<at::Tensor>& grad_sum,
                                                                      const at::Tensor& sum, const at::Tensor& weight,
                                                                      const at::Tensor& inverse_rms,
                                                                      std::optional<at::ScalarType> residual_dtype) {
  // Blocks enough to fill a GPU, few enough that reading their sums again costs little.
  constexpr NormBlocks kBlocks{/*least_rows=*/4, /*most_blocks=*/1024};
  const NormGradients out = outputs_of_rms_norm_backward(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype);
  const c10::cuda::CUDAGuard device(sum.device());
  if (!fits(sum)) return rms_norm_backward_reference(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype);
  const NormBackwardRows rows = norm_backward_rows(grad_y, grad_sum, sum, weight, inverse_rms, out, kBlocks);
  NormBackwardArguments a{};
  a.rows = rows.sum.size(0);
  a.n = rows.sum.size(1);
  a.rows_a_block = rows.rows_a_block;
  a.grad_y = input_of(rows.grad_y);
  a.grad_sum = input_of(rows.grad_sum);
  a.x = input_of(rows.sum);
  a.weight = input_of(rows.weight);
  a.inverse_rms = rows.inverse_rms.const_data_ptr<float>();
  a.grad_x = output_of(rows.grad_x);
  a.grad_residual = output_of(rows.grad_residual);
  a.partial_sums = rows.partial_sums.mutable_data_ptr<float>();
  a.grad_weight = output_of(rows.grad_weight);
  C10_CUDA_CHECK(launch_norm_backward(a, c10::cuda::getCurrentCUDAStream()));
  return {out.x, out.weight, out.residual};
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"rms_norm", &cuda::rms_norm_cuda>(library);
  implement<"add_rms_norm", &cuda::add_rms_norm_cuda>(library);
  implement<"rms_norm_apply", &cuda::rms_norm_apply_cuda>(library);
  implement<"rms_norm_backward", &cuda::rms_norm_backward_cuda>(library);
}
