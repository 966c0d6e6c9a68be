// CPU: checks, the table of blocks, then the kernel of this machine's capability.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/cpu/adamw_kernel.h"
#include "csrc/ops/adamw_checks.h"
#include "csrc/ops/dispatch.h"

namespace at::native {
DEFINE_DISPATCH(satformer_adamw_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

AdamWMemory<void*> written(const at::Tensor& x) { return {x.mutable_data_ptr(), x.scalar_type()}; }

std::vector<AdamWItem> items_of(const AdamWArguments& a) {
  const std::vector<AdamWCorrection> correction = adamw_corrections(a.settings, a.steps);
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

void adamw_cpu(const AdamWArguments& a) {
  check_adamw(a);
  check_adamw_memory(a);
  const std::vector<AdamWItem> items = items_of(a);
  const FlatBlockTable table(a.parameters);
  at::native::satformer_adamw_stub(at::kCPU, items.data(), table.blocks(),
                                   AdamWCoefficients{.gradient_factor = a.gradient_factor.item<double>(),
                                                     .beta1 = a.settings.beta1,
                                                     .beta2 = a.settings.beta2,
                                                     .eps = a.settings.eps,
                                                     .decay = 1 - a.settings.lr * a.settings.weight_decay});
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  implement<"adamw_", &adamw_cpu>(library);
}
