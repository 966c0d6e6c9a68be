// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/cpu/qk_norm_rope_mix_kernel.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/qk_norm_rope_mix_checks.h"

namespace at::native {
DEFINE_DISPATCH(satformer_qk_norm_rope_mix_stub);
DEFINE_DISPATCH(satformer_qk_norm_rope_mix_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

MixOutputs qk_norm_rope_mix_cpu(const MixInputs& in) {
  check_qk_norm_rope_mix(in);
  MixOutputs out = outputs_of_qk_norm_rope_mix(in);
  at::native::satformer_qk_norm_rope_mix_stub(at::kCPU, in, out);
  return out;
}

MixGradients qk_norm_rope_mix_backward_cpu(const MixOutputs& grads, const MixBackwardInputs& in,
                                           const MixGradientTargets& targets, std::array<bool, 5> output_mask) {
  check_qk_norm_rope_mix_backward(in, grads, targets);
  MixGradients out = outputs_of_qk_norm_rope_mix_backward(in, targets, output_mask);
  at::native::satformer_qk_norm_rope_mix_backward_stub(at::kCPU, in, contiguous_rows(grads), targets, out);
  return out;
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"qk_norm_rope_mix", &qk_norm_rope_mix_cpu>(library);
  implement<"qk_norm_rope_mix_backward", &qk_norm_rope_mix_backward_cpu>(library);
}
