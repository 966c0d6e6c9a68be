// Autograd: refused where it would have to record, as PyTorch's optimisers run under no_grad. Version counters see the
// write, within autograd and outside (inference mode on ordinary tensors).
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/library.h>

#include "csrc/ops/adamw_calls.h"
#include "csrc/ops/flat_list.h"

namespace satformer::ops {
namespace {

void adamw_version(at::TensorList parameters, at::TensorList gradients, at::TensorList exp_avgs,
                   at::TensorList exp_avg_sqs, const at::Tensor& gradient_factor, double lr, double beta1, double beta2,
                   double eps, double weight_decay, at::IntArrayRef steps) {
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    adamw_operator().call(parameters, gradients, exp_avgs, exp_avg_sqs, gradient_factor, lr, beta1, beta2, eps,
                          weight_decay, steps);
  }
  for (const at::TensorList list : {parameters, exp_avgs, exp_avg_sqs}) {
    for (const at::Tensor& x : list) torch::autograd::impl::bump_version(x);
  }
}

void adamw_autograd(at::TensorList parameters, at::TensorList gradients, at::TensorList exp_avgs,
                    at::TensorList exp_avg_sqs, const at::Tensor& gradient_factor, double lr, double beta1,
                    double beta2, double eps, double weight_decay, at::IntArrayRef steps) {
  check_not_recorded("adamw_",
                     {{"parameters", parameters},
                      {"gradients", gradients},
                      {"exp_avgs", exp_avgs},
                      {"exp_avg_sqs", exp_avg_sqs},
                      {"gradient_factor", gradient_factor}},
                     "call it under no_grad");
  adamw_version(parameters, gradients, exp_avgs, exp_avg_sqs, gradient_factor, lr, beta1, beta2, eps, weight_decay,
                steps);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Autograd, library) { library.impl("adamw_", &satformer::ops::adamw_autograd); }

TORCH_LIBRARY_IMPL(satformer, ADInplaceOrView, library) { library.impl("adamw_", &satformer::ops::adamw_version); }
