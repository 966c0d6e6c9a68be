// CPU: checks, output tensors, then the kernels of this machine's capability.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/cpu/attention_inputs_kernel.h"
#include "csrc/ops/attention_inputs_arguments.h"
#include "csrc/ops/attention_inputs_calls.h"

namespace at::native {
DEFINE_DISPATCH(satformer_attention_inputs_stub);
DEFINE_DISPATCH(satformer_attention_inputs_backward_stub);
}  // namespace at::native

namespace satformer::ops {
namespace {

AttentionOperands inputs_cpu(const AttentionInputs& in) {
  check_attention_inputs(in);
  AttentionOperands out = empty_operands(in);
  at::native::satformer_attention_inputs_stub(at::kCPU, in, out);
  return out;
}

AttentionInputGradients backward_cpu(const AttentionInputs& in, const AttentionOperands& grads,
                                     const AttentionInputTargets& targets, std::array<bool, 5> output_mask) {
  check_attention_inputs_backward(in, grads, targets);
  AttentionInputGradients out = empty_gradients(in, targets, output_mask);
  at::native::satformer_attention_inputs_backward_stub(at::kCPU, in, contiguous_rows(grads), targets, out);
  return out;
}

}  // namespace
}  // namespace satformer::ops

TORCH_LIBRARY_IMPL(satformer, CPU, library) {
  using namespace satformer::ops;
  library.impl("attention_inputs", &attention_inputs_entry<&inputs_cpu>);
  library.impl("attention_inputs_backward", &attention_inputs_backward_entry<&backward_cpu>);
}
