// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/qk_norm_rope_mix_arguments.h"
#include "csrc/ops/qk_norm_rope_mix_calls.h"

namespace satformer::ops {
namespace {

MixOutputs inputs_meta(const MixInputs& in) {
  check_qk_norm_rope_mix(in);
  return empty_operands(in);
}

MixGradients backward_meta(const MixInputs& in, const MixOutputs& grads, const MixGradientTargets& targets,
                           std::array<bool, 5> output_mask) {
  check_qk_norm_rope_mix_backward(in, grads, targets);
  return empty_gradients(in, targets, output_mask);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  library.impl("qk_norm_rope_mix", &qk_norm_rope_mix_entry<&inputs_meta>);
  library.impl("qk_norm_rope_mix_backward", &qk_norm_rope_mix_backward_entry<&backward_meta>);
}
