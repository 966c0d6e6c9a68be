// Shapes, dtypes and checks without values: torch.compile, export and fake tensors.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "csrc/ops/causal_attention_arguments.h"

TORCH_LIBRARY_IMPL(satformer, Meta, library) {
  library.impl("causal_attention", &satformer::ops::check_causal_attention);
  library.impl("causal_attention_backward", &satformer::ops::check_causal_attention_backward);
}
