#include "csrc/ops/adamw.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/adamw_checks.h"
#include "csrc/ops/dispatch.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  library.def(
      "adamw_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
      "Tensor gradient_factor, *, float lr, float beta1, float beta2, float eps, float weight_decay, int[] steps) -> "
      "()",
      {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides});
}

namespace satformer::ops {

void adamw_(const AdamWTensors& tensors, const AdamWSettings& settings, at::IntArrayRef steps) {
  static const Operator<decltype(adamw_)> op("satformer::adamw_");
  op(tensors, settings, steps);
}

}  // namespace satformer::ops

// Checks without values: torch.compile, export and fake tensors.
TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  satformer::ops::implement<"adamw_", &satformer::ops::check_adamw>(library);
}
