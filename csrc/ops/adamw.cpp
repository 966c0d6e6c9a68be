#include "csrc/ops/adamw.h"

#include <ATen/core/enum_tag.h>
#include <torch/library.h>

#include "csrc/ops/adamw_calls.h"
#include "csrc/ops/typed_operator.h"

TORCH_LIBRARY_FRAGMENT(satformer, library) {
  library.def(
      "adamw_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
      "Tensor gradient_factor, *, float lr, float beta1, float beta2, float eps, float weight_decay, int[] steps) -> "
      "()",
      {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides});
}

namespace satformer::ops {

const c10::TypedOperatorHandle<AdamWSignature>& adamw_operator() {
  static const auto handle = typed_operator<AdamWSignature>("satformer::adamw_");
  return handle;
}

void adamw_(const AdamWTensors& tensors, const AdamWSettings& settings, at::IntArrayRef steps) {
  adamw_operator().call(tensors.parameters, tensors.gradients, tensors.exp_avgs, tensors.exp_avg_sqs,
                        tensors.gradient_factor, settings.lr, settings.beta1, settings.beta2, settings.eps,
                        settings.weight_decay, steps);
}

}  // namespace satformer::ops
