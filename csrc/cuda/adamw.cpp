// CUDA: checks and stream; the kernel is in adamw.cu.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "csrc/cuda/adamw_launch.h"
#include "csrc/cuda/from_tensor.h"
#include "csrc/ops/adamw_checks.h"
#include "csrc/ops/dispatch.h"

namespace satformer::ops::cuda {
namespace {

std::vector<AdamWItem> items_of(const AdamWArguments& a) {
  const std::vector<AdamWCorrection> correction = adamw_corrections(a.settings, a.steps);
  std::vector<AdamWItem> items;
  items.reserve(a.parameters.size());
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    items.push_back({flat_output_of(a.parameters[i]), flat_output_of(a.exp_avgs[i]), flat_output_of(a.exp_avg_sqs[i]),
                     flat_input_of(a.gradients[i]), a.parameters[i].numel(), correction[i].step_size,
                     correction[i].inverse_root});
  }
  return items;
}

void adamw_cuda(const AdamWArguments& a) {
  check_adamw(a);
  check_adamw_memory(a);
  const c10::cuda::CUDAGuard device(a.gradient_factor.device());
  const std::vector<AdamWItem> items = items_of(a);
  const AdamWCoefficients coefficients{flat_input_of(a.gradient_factor), a.settings.beta1, a.settings.beta2,
                                       a.settings.eps, 1 - a.settings.lr * a.settings.weight_decay};
  C10_CUDA_CHECK(
      launch_adamw(items.data(), static_cast<int64_t>(items.size()), coefficients, c10::cuda::getCurrentCUDAStream()));
}

}  // namespace
}  // namespace satformer::ops::cuda

TORCH_LIBRARY_IMPL(satformer, CUDA, library) {
  using namespace satformer::ops;
  implement<"adamw_", &cuda::adamw_cuda>(library);
}
