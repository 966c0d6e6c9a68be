// Checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/adamw_arguments.h"

namespace satformer::ops {
namespace {

void adamw_meta(at::TensorList parameters, at::TensorList gradients, at::TensorList exp_avgs,
                at::TensorList exp_avg_sqs, const at::Tensor& gradient_factor, double lr, double beta1, double beta2,
                double eps, double weight_decay, at::IntArrayRef steps) {
  check_adamw({parameters,
               gradients,
               exp_avgs,
               exp_avg_sqs,
               gradient_factor,
               {.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = weight_decay},
               steps});
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) { library.impl("adamw_", &satformer::ops::adamw_meta); }
