// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/attention_inputs_arguments.h"
#include "csrc/ops/attention_inputs_calls.h"

namespace satformer::ops {
namespace {

AttentionOperands inputs_meta(const AttentionInputs& in) {
  check_attention_inputs(in);
  return empty_operands(in);
}

AttentionInputGradients backward_meta(const AttentionInputs& in, const AttentionOperands& grads,
                                      const AttentionInputTargets& targets, std::array<bool, 5> output_mask) {
  check_attention_inputs_backward(in, grads, targets);
  return empty_gradients(in, targets, output_mask);
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  using namespace satformer::ops;
  library.impl("attention_inputs", &attention_inputs_entry<&inputs_meta>);
  library.impl("attention_inputs_backward", &attention_inputs_backward_entry<&backward_meta>);
}
