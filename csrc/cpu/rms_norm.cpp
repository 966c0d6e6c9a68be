// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/cpu/rms_norm_kernel.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/rms_norm_checks.h"

namespace at::native {
DEFINE_DISPATCH(satformer_rms_norm_stub);
DEFINE_DISPATCH(satformer_rms_norm_apply_stub);
DEFINE_DISPATCH(satformer_rms_norm_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

std::tuple<at::Tensor, at::Tensor> rms_norm_cpu(const at::Tensor& x, const at::Tensor& weight, double eps,
                                                std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = outputs_of_rms_norm(x, std::nullopt, weight, eps, out_dtype);
  at::native::satformer_rms_norm_stub(at::kCPU, norm_rows(x, std::nullopt, weight, eps, out));
  return {out.y, out.inverse_rms};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> add_rms_norm_cpu(const at::Tensor& x, const at::Tensor& residual,
                                                                const at::Tensor& weight, double eps,
                                                                std::optional<at::ScalarType> out_dtype) {
  const NormOutputs out = outputs_of_rms_norm(x, residual, weight, eps, out_dtype);
  at::native::satformer_rms_norm_stub(at::kCPU, norm_rows(x, residual, weight, eps, out));
  return {out.sum, out.y, out.inverse_rms};
}

at::Tensor rms_norm_apply_cpu(const at::Tensor& sum, const at::Tensor& weight, const at::Tensor& inverse_rms,
                              std::optional<at::ScalarType> out_dtype) {
  at::Tensor y = outputs_of_rms_norm_apply(sum, weight, inverse_rms, out_dtype);
  at::native::satformer_rms_norm_apply_stub(at::kCPU,
                                            norm_rows(sum, std::nullopt, weight, /*eps=*/0, {{}, y, inverse_rms}));
  return y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> rms_norm_backward_cpu(const at::Tensor& grad_y,
                                                                     const std::optional<at::Tensor>& grad_sum,
                                                                     const at::Tensor& sum, const at::Tensor& weight,
                                                                     const at::Tensor& inverse_rms,
                                                                     std::optional<at::ScalarType> residual_dtype) {
  // Enough blocks to share out, few enough to add up.
  constexpr NormBlocks kBlocks{/*least_rows=*/16, /*most_blocks=*/128};
  const NormGradients out = outputs_of_rms_norm_backward(grad_y, grad_sum, sum, weight, inverse_rms, residual_dtype);
  at::native::satformer_rms_norm_backward_stub(
      at::kCPU, norm_backward_rows(grad_y, grad_sum, sum, weight, inverse_rms, out, kBlocks));
  return {out.x, out.weight, out.residual};
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"rms_norm", &rms_norm_cpu>(library);
  implement<"add_rms_norm", &add_rms_norm_cpu>(library);
  implement<"rms_norm_apply", &rms_norm_apply_cpu>(library);
  implement<"rms_norm_backward", &rms_norm_backward_cpu>(library);
}
