// CPU: checks, the table of blocks, then the kernel of this machine's capability.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/cpu/adamw_kernel.h"
#include "csrc/ops/adamw_arguments.h"

namespace at::native {
DEFINE_DISPATCH(satformer_adamw_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

AdamWMemory<void*> written(const at::Tensor& x) { return {x.mutable_data_ptr(), x.scalar_type()}; }

std::vector<AdamWItem> items_of(const AdamWArguments& a) {
  const std::vector<AdamWCorrection> correction = corrections(a.settings, a.steps);
  std::vector<AdamWItem> items;
  items.reserve(a.parameters.size());
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    items.push_back({written(a.parameters[i]),
                     written(a.exp_avgs[i]),
                     written(a.exp_avg_sqs[i]),
                     {a.gradients[i].const_data_ptr(), a.gradients[i].scalar_type()},
                     correction[i].step_size,
                     correction[i].inverse_root});
  }
  return items;
}

void adamw_cpu(at::TensorList parameters, at::TensorList gradients, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
               const at::Tensor& gradient_factor, double lr, double beta1, double beta2, double eps,
               double weight_decay, at::IntArrayRef steps) {
  const AdamWArguments a{parameters,
                         gradients,
                         exp_avgs,
                         exp_avg_sqs,
                         gradient_factor,
                         {.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = weight_decay},
                         steps};
  check_adamw(a);
  check_memory(a);
  const std::vector<AdamWItem> items = items_of(a);
  const FlatBlockTable table(parameters);
  at::native::satformer_adamw_stub(at::kCPU, items.data(), table.blocks(),
                                   AdamWCoefficients{.gradient_factor = gradient_factor.item<double>(),
                                                     .beta1 = beta1,
                                                     .beta2 = beta2,
                                                     .eps = eps,
                                                     .decay = 1 - lr * weight_decay});
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) { library.impl("adamw_", &satformer::ops::adamw_cpu); }
