// Autograd: refused where it would have to record, as PyTorch's optimisers run under no_grad. Version counters see the
// write, within autograd and outside (inference mode on ordinary tensors).
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>

#include "csrc/ops/adamw_checks.h"
#include "csrc/ops/dispatch.h"
#include "csrc/ops/flat_list.h"

namespace satformer::ops {
namespace {

void adamw_version(const AdamWArguments& a) {
  static const Operator<void(const AdamWArguments&)> op("satformer::adamw_");
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    op(a);
  }
  for (const at::TensorList list : {a.parameters, a.exp_avgs, a.exp_avg_sqs}) {
    for (const at::Tensor& x : list) torch::autograd::impl::bump_version(x);
  }
}

void adamw_autograd(const AdamWArguments& a) {
  check_not_recorded("adamw_",
                     {{"parameters", a.parameters},
                      {"gradients", a.gradients},
                      {"exp_avgs", a.exp_avgs},
                      {"exp_avg_sqs", a.exp_avg_sqs},
                      {"gradient_factor", a.gradient_factor}},
                     "call it under no_grad");
  adamw_version(a);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) {
  using namespace satformer::ops;
  implement<"adamw_", &adamw_autograd>(library);
}

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) {
  using namespace satformer::ops;
  implement<"adamw_", &adamw_version>(library);
}
